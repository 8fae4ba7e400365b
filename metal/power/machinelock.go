package power

import (
	"context"
	"errors"
	"sync"

	"github.com/muster-hpc/muster"
)

// machineLocks allows one order for a machine at a time. A newer order ends the older
// one before it begins: a fence that waited behind a boot, or a boot that came
// through after a fence, would both be wrong.
type machineLocks struct {
	mu   sync.Mutex
	last uint64 // how many orders came
	busy map[muster.MachineID]*machineLock
}

type machineLock struct {
	number uint64 // orders are numbered as they come
	what   string
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// take ends the machine's order, if it has one, and returns the context of the
// new one. leave must be called. An order whose ctx is over disturbs nobody, and one that
// had to wait does not end one that came after it.
func (ts *machineLocks) take(ctx context.Context, m muster.MachineID, what string) (mine context.Context, leave func(), err error) {
	mine, cancel := context.WithCancelCause(ctx)
	own := &machineLock{what: what, cancel: cancel, done: make(chan struct{})}
	ts.mu.Lock()
	ts.last++
	own.number = ts.last
	ts.mu.Unlock()
	for {
		ts.mu.Lock()
		old := ts.busy[m]
		if ctx.Err() != nil {
			ts.mu.Unlock()
			cancel(nil)
			return nil, nil, context.Cause(ctx)
		}
		if old != nil && old.number > own.number {
			ts.mu.Unlock()
			cancel(nil)
			return nil, nil, replacedError(m, old.what)
		}
		if old == nil {
			ts.busy[m] = own
			ts.mu.Unlock()
			return mine, func() {
				ts.mu.Lock()
				delete(ts.busy, m)
				ts.mu.Unlock()
				close(own.done)
				cancel(nil)
			}, nil
		}
		ts.mu.Unlock()
		old.cancel(replacedError(m, what))
		select {
		case <-old.done:
		case <-ctx.Done():
			cancel(nil)
			return nil, nil, context.Cause(ctx)
		}
	}
}

func replacedError(m muster.MachineID, by string) error {
	return muster.Errorf(muster.EConflict, "%s: a newer order (%s) took the place of this one", m, by).Because(muster.ReasonChangedMeanwhile)
}

func asError(err error, e **muster.Error) bool { return errors.As(err, e) }
