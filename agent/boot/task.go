package boot

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Times of work that is not a boot.
const (
	workTell = 30 * time.Second // between hellos of a machine that works
	workEnd  = 30 * time.Second // for work to end when it shall
)

// work does a task that is not boot, tells the server, and goes off. The order's
// time is for what fails: work that goes on may take longer.
func (m *Machine) work(ctx context.Context, o *wire.BootTask, until time.Time) error {
	m.state = string(o.Kind)
	if m.Work == nil {
		return &failure{m.state, "work", true, muster.Errorf(muster.EInvalid, "this program does not know how to %s", o.Kind).
			WithHint("use the initramfs of this server's version")}
	}
	began := m.Up()
	done, facts, err := m.doTask(ctx, o)
	if err != nil {
		return err
	}
	done.Kind, done.Took = o.Kind, muster.Duration(m.Up()-began)
	m.reached(m.state, "done, passed: %v", done.Passed)
	if facts != nil {
		m.facts, m.told = *facts, false
	}
	if late := m.Clock.Now().Add(giveUp(o)); until.Before(late) {
		until = late // what was done in hours is not lost because the server is away
	}
	p := pauses{first: 500 * time.Millisecond, most: finalAsk, clock: m.Clock}
	for {
		h := m.checkIn()
		h.Attempt, h.Done = o.Attempt, &done
		if _, err = m.say(ctx, h); err == nil {
			break
		}
		m.Console.Fail(m.state, err)
		if !m.Clock.Now().Before(until) {
			break
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	if o.Stay > 0 && err == nil {
		m.Console.Say("off: the task is done; the server may switch this machine off, or it goes by itself in %v", stay(o))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.Clock.After(stay(o)):
		}
	}
	m.Console.Say("off: the task is done")
	m.Off()
	return nil
}

func stay(o *wire.BootTask) time.Duration { return time.Duration(o.Stay) }

// worked is what became of work.
type worked struct {
	done  wire.BootTaskResult
	facts *muster.Facts
	err   error
}

// doTask does the work. Meanwhile it keeps the machine's address and tells the server
// how far it is; another order ends it.
func (m *Machine) doTask(ctx context.Context, o *wire.BootTask) (wire.BootTaskResult, *muster.Facts, error) {
	doing, stop := context.WithCancel(ctx)
	defer stop()
	var last atomic.Pointer[string]
	say := func(format string, args ...any) {
		text := plain(fmt.Sprintf(format, args...))
		last.Store(&text)
		m.Console.Say("%s", text)
	}
	over := make(chan worked, 1)
	go func() {
		d, f, err := m.Work(doing, o, say)
		over <- worked{d, f, err}
	}()
	for {
		select {
		case w := <-over:
			if w.err != nil {
				return w.done, nil, &failure{m.state, "work", muster.CodeOf(w.err) == muster.EInvalid, w.err}
			}
			return w.done, w.facts, nil
		case <-ctx.Done():
			m.await(over)
			return wire.BootTaskResult{}, nil, ctx.Err()
		case <-m.Clock.After(workTell):
		}
		m.renew(ctx)
		h := m.checkIn()
		h.Attempt = o.Attempt
		if text := last.Load(); text != nil {
			h.Progress = *text
		}
		try, cancel := context.WithTimeout(ctx, tellTime)
		r, err := m.say(try, h)
		cancel()
		switch {
		case err != nil:
			m.Console.Say("%s: reporting to the server failed: %s", m.state, describe(err))
		case r.Task != nil && !same(r.Task, o):
			stop()
			m.await(over)
			return wire.BootTaskResult{}, nil, &failure{m.state, "task", false, muster.Errorf(muster.EConflict, "ended before it was done: the server gives another task").
				WithHint("nothing is known of how far it came: start it again")}
		}
	}
}

// await waits until work that was told to end does, but not for ever: a broken disk
// may hold it.
func (m *Machine) await(over <-chan worked) {
	select {
	case <-over:
	case <-m.Clock.After(workEnd):
		m.Console.Say("%s: it does not end; going on without it", m.state)
	}
}
