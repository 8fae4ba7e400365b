package boot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// store is a Source in memory with faults.
type store struct {
	name  string
	bytes []byte
	mu    sync.Mutex
	reads []int64
	fault func(n int, from, to int64) (give int64, err error) // how much is given
}

func (s *store) Name() string { return s.name }

func (s *store) Read(_ context.Context, _ string, from, to int64, w io.Writer) error {
	s.mu.Lock()
	s.reads = append(s.reads, from)
	n := len(s.reads)
	s.mu.Unlock()
	give, err := to-from, error(nil)
	if s.fault != nil {
		give, err = s.fault(n, from, to)
	}
	_, _ = w.Write(s.bytes[from : from+give])
	return err
}

func content(size int) ([]byte, wire.BootFile) {
	b := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	f := wire.BootFile{Path: "root", Size: int64(size), Piece: 64 << 10}
	for at := 0; at < size; at += 64 << 10 {
		sum := sha256.Sum256(b[at:min(at+64<<10, size)])
		f.Pieces = append(f.Pieces, sum[:])
	}
	return b, f
}

func TestFetch(t *testing.T) {
	t.Parallel()
	b, file := content(20*64<<10 + 17)
	spoiled := bytes.Clone(b)
	spoiled[5*64<<10+3] ^= 1
	moved := append(bytes.Clone(b[64<<10:2*64<<10]), b[:64<<10]...)
	moved = append(moved, b[2*64<<10:]...)
	cut := errors.New("cut off")
	for name, c := range map[string]struct {
		sources []Source
		code    muster.Code
		check   func(t *testing.T, s []Source)
	}{
		"plain": {[]Source{&store{bytes: b}}, "", nil},
		"resumed": {[]Source{&store{bytes: b, fault: func(n int, from, to int64) (int64, error) {
			if n%2 == 1 {
				return (to - from) / 2, cut
			}
			return to - from, nil
		}}}, "", func(t *testing.T, s []Source) {
			within := 0
			for _, at := range s[0].(*store).reads {
				if at%(64<<10) != 0 {
					within++
				}
			}
			if within < 5 {
				t.Errorf("only %d reads went on within a piece", within)
			}
		}},
		"silent for a while": {[]Source{&store{bytes: b, fault: func(n int, from, to int64) (int64, error) {
			if n < 12 {
				return 0, cut
			}
			return to - from, nil
		}}}, "", nil},
		"in another's place": {[]Source{&store{bytes: moved}}, muster.ECorrupt, nil},
		"wrong":              {[]Source{&store{name: "s", bytes: spoiled}}, muster.ECorrupt, nil},
		"both wrong":         {[]Source{&store{bytes: spoiled}, &store{bytes: spoiled}}, muster.ECorrupt, nil},
		"one wrong": {[]Source{&store{name: "bad", bytes: make([]byte, len(b))}, &store{bytes: b}}, "", func(t *testing.T, s []Source) {
			if n := len(s[0].(*store).reads); n > connections { // each connection may find out by itself
				t.Errorf("the source that gave a wrong piece was asked %d times", n)
			}
		}},
		"one dead": {[]Source{&store{bytes: b, fault: func(int, int64, int64) (int64, error) { return 0, cut }}, &store{bytes: b}}, "", nil},
		"none":     {nil, muster.EInvalid, nil},
		"never":    {[]Source{&store{bytes: b, fault: func(int, int64, int64) (int64, error) { return 0, cut }}}, muster.EUnavailable, nil},
		"refused":  {[]Source{&store{bytes: b, fault: func(int, int64, int64) (int64, error) { return 0, muster.Errorf(muster.EForbidden, "no") }}}, muster.EUnavailable, nil},
		"lies about the end": {[]Source{&store{bytes: append(bytes.Clone(b), make([]byte, 64<<10)...), fault: func(_ int, from, to int64) (int64, error) {
			return to - from + 9, nil
		}}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
				defer cancel()
				into := make([]byte, len(b))
				f := &Fetcher{File: file, Into: into, Sources: c.sources, Clock: muster.SystemClock{}}
				err := f.Run(ctx)
				if muster.CodeOf(err) != c.code {
					t.Fatalf("%v", err)
				}
				if c.code == "" && (!bytes.Equal(into, b) || f.Got() != int64(len(b))) {
					t.Errorf("what arrived differs, %d bytes", f.Got())
				}
				if c.code != "" && bytes.Equal(into, b) {
					t.Error("all is there after an error")
				}
				if c.check != nil {
					c.check(t, c.sources)
				}
			})
		})
	}
}

func TestEnough(t *testing.T) {
	t.Parallel()
	f := &wire.BootFiles{Root: wire.BootFile{Size: 300 << 20}, Memory: 100 << 20}
	if err := enough(f, 464<<20); err != nil {
		t.Error(err)
	}
	if err := enough(f, 464<<20-1); muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), "464 MiB") || !strings.Contains(err.Error(), "463 MiB are free") {
		t.Error(err)
	}
}
