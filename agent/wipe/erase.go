package wipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/muster-hpc/muster"
)

// chunk is how much is erased at a time, in bytes: a slow disk takes two seconds for
// it, so that people see how far it is and the end is not far away.
const chunk = 256 << 20

// Erased is what was done to a disk, and what was seen afterwards.
type Erased struct {
	// Discarded: the disk was told that nobody needs any of it. Refused is what it
	// answered when it should know what that means and did not do it.
	Discarded bool
	Refused   error
	// Zeroed is how many bytes zeroes were written to.
	Zeroed int64
	Proof  Proof
}

// String says it for the record.
func (e Erased) String() string {
	s := fmt.Sprintf("zeroes written to all %d bytes; %s", e.Zeroed, e.Proof)
	switch {
	case e.Discarded:
		s = "discarded; " + s
	case e.Refused != nil:
		s = fmt.Sprintf("not discarded (%v); ", e.Refused) + s
	}
	return s
}

// Erase empties a disk: it is discarded where it can be, which reaches what lies in
// spare cells, and zeroes are written to all of it, because after a discard a disk may
// show anything. Then parts of it are read back. progress is told how many bytes have
// zeroes now. It ends soon after ctx does; the disk is half empty then.
func Erase(ctx context.Context, d Device, progress func(done int64)) (Erased, error) {
	var e Erased
	switch err := each(ctx, d.Size(), d.Discard); {
	case err == nil:
		e.Discarded = true
	case ctx.Err() != nil:
		return e, ctx.Err()
	case !errors.Is(err, errors.ErrUnsupported):
		e.Refused = err // many a controller says that it can and cannot; zeroes will tell
	}
	err := each(ctx, d.Size(), func(from, n int64) error {
		if err := d.Zero(from, n); err != nil {
			return fmt.Errorf("at byte %d: %w", from, err)
		}
		e.Zeroed = from + n
		progress(e.Zeroed)
		return nil
	})
	if err != nil {
		return e, failure("write zeroes to", err)
	}
	if err := d.Flush(); err != nil {
		return e, failure("flush", err)
	}
	e.Proof, err = Prove(ctx, d, d.Size())
	return e, err
}

// each goes over a disk in chunks.
func each(ctx context.Context, size int64, do func(from, n int64) error) error {
	for from := int64(0); from < size; from += chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(from, min(chunk, size-from)); err != nil {
			return err
		}
	}
	return nil
}

func failure(what string, err error) error {
	return muster.Errorf(muster.EUnavailable, "cannot %s it", what).
		WithHint("the disk is broken: exchange it; `muster machine discover`, then `muster machine approve`, has the record of the machine say what it has now").Wrap(err)
}
