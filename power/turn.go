package power

import (
	"context"
	"errors"
	"sync"

	"github.com/muster-hpc/muster"
)

// turns has one order for a machine at a time. A newer order ends the older
// one before it begins: a fence that waited behind a boot, or a boot that came
// through after a fence, would both be wrong.
type turns struct {
	mu   sync.Mutex
	busy map[muster.MachineID]*turn
}

type turn struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
}

// take ends the machine's order, if it has one, and returns the context of the
// new one. leave must be called.
func (ts *turns) take(ctx context.Context, m muster.MachineID, what string) (mine context.Context, leave func(), err error) {
	mine, cancel := context.WithCancelCause(ctx)
	own := &turn{cancel: cancel, done: make(chan struct{})}
	for {
		ts.mu.Lock()
		old := ts.busy[m]
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
		old.cancel(muster.Errorf(muster.EConflict, "%s: a newer order (%s) took the place of this one", m, what).Because(muster.ReasonChangedMeanwhile))
		select {
		case <-old.done:
		case <-ctx.Done():
			cancel(nil)
			return nil, nil, context.Cause(ctx)
		}
	}
}

func asError(err error, e **muster.Error) bool { return errors.As(err, e) }

// place is where the controller is, for messages.
func (a Address) place() string {
	switch {
	case a.Host == "":
		return string(a.Kind)
	case a.Port == 0:
		return a.Host
	}
	return a.Host + " port " + itoa(a.Port)
}

// addressKey tells addresses apart. The secret is not part of it: it is
// fetched anew for each session.
func addressKey(a Address) string {
	key := ""
	for _, s := range append([]string{
		string(a.Kind), a.Host, itoa(a.Port), a.User, a.Quirk, a.Boot, a.Interface,
		a.Certificate, a.Authority, a.System, a.Program,
	}, a.MACs...) {
		key += s + "\x00"
	}
	if a.UEFI {
		key += "uefi"
	}
	if a.Proves {
		key += "proves"
	}
	return key
}
