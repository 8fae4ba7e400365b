package wipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// Samples of a disk. There is one in each of so many equal parts, at a random place,
// so that nothing as long as two parts is overlooked; and first and last bytes, where
// tables of partitions are.
const (
	samples    = 1024
	sampleSize = 64 << 10 // bytes
	ends       = 1 << 20  // bytes at the start and at the end
	align      = 4096     // of places: as the largest sectors
	// wholly is the size up to which all of a disk is read.
	wholly = 2 * samples * sampleSize
)

// Proof is what was read back of a disk and was zero.
type Proof struct {
	Samples int
	Bytes   int64
	// All: every byte of the disk was read.
	All bool
}

func (p Proof) String() string {
	if p.All {
		return fmt.Sprintf("all %d bytes read back, all zero", p.Bytes)
	}
	return fmt.Sprintf("%d samples (%d MiB) read back, all zero", p.Samples, p.Bytes>>20)
}

// part is a range of a disk.
type part struct{ from, n int64 }

// Prove reads parts of a disk and reports whether they are zero. ECORRUPT: there is
// something, at the byte that the error names.
func Prove(ctx context.Context, r io.ReaderAt, size int64) (Proof, error) {
	buf, free, err := buffer(ends)
	if err != nil {
		return Proof{}, err
	}
	defer free()
	zero := make([]byte, ends)
	var p Proof
	for _, at := range parts(size) {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		b := buf[:at.n]
		if _, err := r.ReadAt(b, at.from); err != nil && !errors.Is(err, io.EOF) {
			return p, muster.Errorf(muster.EUnavailable, "cannot read it back at byte %d", at.from).
				WithHint("the disk is broken: exchange it").Wrap(err)
		}
		if !bytes.Equal(b, zero[:at.n]) {
			i := slices.IndexFunc(b, func(x byte) bool { return x != 0 })
			return p, muster.Errorf(muster.ECorrupt, "byte %d is not zero after zeroes were written", at.from+int64(i)).
				WithHint("the disk ignores commands: replace it")
		}
		p.Samples++
		p.Bytes += at.n
	}
	p.All = size <= wholly
	return p, nil
}

// parts are what is read of a disk: all of a small one.
func parts(size int64) []part {
	var out []part
	if size <= wholly {
		for from := int64(0); from < size; from += ends {
			out = append(out, part{from, min(ends, size-from)})
		}
		return out
	}
	out = append(out, part{0, ends})
	stride := size / samples
	for i := range int64(samples) {
		// The whole sample lies in its part of the disk.
		room := (stride - sampleSize - align) / align
		from := (i*stride+align-1)/align*align + rand.Int64N(room+1)*align
		out = append(out, part{from, sampleSize})
	}
	last := (size - ends) / align * align // a disk need not end with such a place
	for from := last; from < size; from += ends {
		out = append(out, part{from, min(ends, size-from)})
	}
	return out
}

// Tried is what reading a disk in some places showed.
type Tried struct {
	Places  int
	Slowest time.Duration
}

// Try reads a disk in up to so many places, evenly and at random, for as long as the
// time lasts, and at its start and end in any case.
func Try(ctx context.Context, r io.ReaderAt, size int64, places int, clock muster.Clock, long time.Duration) (Tried, error) {
	buf, free, err := buffer(sampleSize)
	if err != nil {
		return Tried{}, err
	}
	defer free()
	began := clock.Now()
	var t Tried
	read := func(from int64) error {
		from = max(0, min(from, size-sampleSize)) / align * align
		at := clock.Now()
		if _, err := r.ReadAt(buf[:min(sampleSize, size-from)], from); err != nil && !errors.Is(err, io.EOF) {
			return muster.Errorf(muster.EUnavailable, "cannot read it at byte %d", from).WithHint("the disk is broken: exchange it").Wrap(err)
		}
		t.Places++
		t.Slowest = max(t.Slowest, clock.Now().Sub(at))
		return nil
	}
	for _, from := range []int64{0, size} {
		if err := read(from); err != nil {
			return t, err
		}
	}
	// In an order of its own, so that a short time, too, shows all of the disk.
	for _, i := range rand.Perm(places) {
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		if clock.Now().Sub(began) > long {
			break
		}
		stride := size / int64(places)
		if err := read(int64(i)*stride + rand.Int64N(max(1, stride))); err != nil {
			return t, err
		}
	}
	return t, nil
}
