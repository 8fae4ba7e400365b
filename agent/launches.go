package agent

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/muster-hpc/muster/wire"

	"github.com/muster-hpc/muster/internal/backoff"
)

// launches runs what the server has measured, one order after the other.
type launches struct {
	mu     sync.Mutex
	id     string // of the order that runs, or whose outcome is not told yet
	cancel context.CancelFunc
	next   *wire.LaunchOrder
	busy   bool
}

// launch takes an order from the server: one that runs already goes on, another
// one takes its place.
func (a *agent) launch(o *wire.LaunchOrder) {
	if o == nil || a.Launch == nil {
		return
	}
	l := &a.launches
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case o.Cancel:
		if l.next != nil && l.next.ID == o.ID {
			l.next = nil
		}
		if l.id == o.ID && l.cancel != nil {
			l.cancel()
		}
		return
	case l.id == o.ID || l.next != nil && l.next.ID == o.ID:
		return
	}
	l.next = o
	if l.cancel != nil {
		l.cancel()
	}
	if !l.busy {
		l.busy = true
		a.jobs.Go(a.launchAll)
	}
}

// launchAll runs orders until there is none.
func (a *agent) launchAll() {
	l := &a.launches
	for {
		l.mu.Lock()
		o := l.next
		l.next = nil
		if o == nil || a.ctx.Err() != nil {
			l.busy, l.id, l.cancel = false, "", nil
			l.mu.Unlock()
			return
		}
		ctx, cancel := context.WithCancel(a.ctx)
		l.id, l.cancel = o.ID, cancel
		l.mu.Unlock()
		end, out := a.Launch(ctx, *o)
		next := a.launched(ctx, end, out)
		cancel()
		if out != nil {
			_ = out.Close()
		}
		a.launch(next)
	}
}

// launched tells the server how a launch went until it has heard, or wants to
// hear no more of it. It returns what to run next.
func (a *agent) launched(ctx context.Context, end wire.LaunchEnd, out *os.File) *wire.LaunchOrder {
	for failures := 1; ; failures++ {
		var body io.Reader
		if out != nil {
			if _, err := out.Seek(0, io.SeekStart); err == nil {
				body = out
			}
		}
		reply, err := a.link.Launched(ctx, end, body)
		switch {
		case err == nil:
			return reply.Next
		case ctx.Err() != nil, refused(err):
			return nil // nobody wants to know any more
		}
		a.Log.Debug("reporting launch result failed", "id", end.ID, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-a.Clock.After(backoff.After(failures, pauseFirst, 5*time.Second)):
		}
	}
}
