package power

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// session is the way to one controller: one command at a time, first come, first
// served. It keeps the drivers of the machines behind it, with their sessions,
// for a while.
type session struct {
	turn chan struct{} // holds one token

	// What follows is touched only by who holds the token.
	drivers  map[muster.MachineID]held
	refusals map[muster.MachineID]refusal
	used     time.Time
	closing  bool
}

// held is a driver, and the address and password that it was made for.
type held struct {
	Driver
	way    way
	secret [sha256.Size]byte
}

func newSession() *session {
	l := &session{turn: make(chan struct{}, 1), drivers: map[muster.MachineID]held{}, refusals: map[muster.MachineID]refusal{}}
	l.turn <- struct{}{}
	return l
}

// take waits for the lane.
func (l *session) take(ctx context.Context) error {
	select {
	case <-l.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *session) give() { l.turn <- struct{}{} }

// sessions are those of all controllers.
type sessions struct {
	mu   sync.Mutex
	all  map[string]*session
	done chan struct{}  // closed when Control ends
	wait sync.WaitGroup // closers of idle sessions
}

func (ls *sessions) of(key string) *session {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[key]
	if l == nil {
		l = newSession()
		ls.all[key] = l
	}
	return l
}

// driver returns the machine's, made anew when its address or its password changed: a
// session of the old one would hide that the new one is wrong. The caller holds the lane.
func (c *Control) driver(ctx context.Context, l *session, t Target) (Driver, error) {
	to := t.way()
	secret, _ := secretSum(ctx, t) // one that cannot be fetched is the driver's to tell
	if h, ok := l.drivers[t.Machine]; ok {
		if h.way == to && h.secret == secret {
			return h.Driver, nil
		}
		c.end(ctx, h)
		delete(l.drivers, t.Machine)
	}
	d, err := c.cfg.Drivers.Open(t, c.cfg.Deps)
	if err != nil {
		return nil, err
	}
	l.drivers[t.Machine] = held{d, to, secret}
	return d, nil
}

// once gives one command, with the lane and a deadline.
func (c *Control) once(ctx context.Context, t Target, f func(context.Context, Driver) error) error {
	l := c.sessions.of(t.controller())
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	slots := c.slots
	if t.Address.Kind == muster.PowerScript {
		slots = c.programs
	}
	select { // not more at once than this computer should talk to, or run
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d, err := c.driver(ctx, l, t)
	if err != nil {
		return err
	}
	if err := l.refused(ctx, t, c.clock.Now()); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, c.cfg.Times.Command)
	defer cancel()
	err = f(short, d)
	if err != nil && ctx.Err() == nil && errors.Is(short.Err(), context.DeadlineExceeded) && muster.CodeOf(err) == muster.EInternal {
		err = timedOut(t, c.cfg.Times.Command).Wrap(err)
	}
	l.used = c.clock.Now()
	l.remember(ctx, t, err, l.used.Add(c.cfg.Times.Refused))
	if c.cfg.Times.Keep < 0 {
		c.end(ctx, d)
	} else if !l.closing {
		l.closing = true
		c.sessions.wait.Go(func() { c.closeIdle(l) })
	}
	return err
}

// closeIdle ends the sessions of a lane that nobody used for a while.
func (c *Control) closeIdle(l *session) {
	rest := c.cfg.Times.Keep
	for {
		select {
		case <-c.clock.After(rest):
		case <-c.sessions.done:
		}
		if l.take(context.Background()) != nil {
			return
		}
		rest = c.cfg.Times.Keep - c.clock.Now().Sub(l.used)
		if rest <= 0 || c.over() {
			for m, h := range l.drivers {
				c.end(context.Background(), h)
				delete(l.drivers, m)
			}
			l.closing = false
			l.give()
			return
		}
		l.give()
	}
}

// end closes a driver's sessions, even when whoever used it went away.
func (c *Control) end(ctx context.Context, d Driver) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := d.Close(ctx); err != nil {
		c.cfg.Log.Debug("closing BMC session failed", "error", err)
	}
}

func (c *Control) over() bool {
	select {
	case <-c.sessions.done:
		return true
	default:
		return false
	}
}
