package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/muster-hpc/muster/wire"

	"github.com/muster-hpc/muster/internal/backoff"
)

// applier holds the configuration that is to be in force. One goroutine lives
// while there is something to apply.
type applier struct {
	mu      sync.Mutex
	pending *wire.NodeConfig // to be applied next
	cancel  context.CancelFunc
	running bool
	newest  int64 // generation last offered
	done    int64 // generation in force
	ready   bool  // was ready once: from then on it stays so
	wake    chan struct{}
	first   chan struct{} // closed when the first Apply has returned
	once    sync.Once
}

// How an Apply that fails is repeated. A node that was never ready is reported
// as failed at the third failure; it goes on trying, for the server decides
// what becomes of it.
const (
	applyFirst  = 200 * time.Millisecond
	applyMost   = 30 * time.Second
	applyPardon = 3
)

const checkConfiguration = "configuration"

// offer makes c the configuration to be in force, and ends an Apply of an
// older one. One that is not newer is ignored.
func (a *agent) offer(c *wire.NodeConfig) {
	p := &a.apply
	p.mu.Lock()
	if p.newest != 0 && c.Generation <= p.newest {
		p.mu.Unlock()
		return
	}
	p.newest, p.pending = c.Generation, c
	start := !p.running
	p.running = true
	if p.cancel != nil {
		p.cancel()
	}
	p.mu.Unlock()
	a.mu.Lock()
	a.links = Links{Message: c.Interface, Management: c.Management, Memory: c.Memory}
	a.mu.Unlock()
	a.reacher.know(c.Hosts)
	a.keepConfig(c)
	select {
	case p.wake <- struct{}{}:
	default:
	}
	if start {
		a.jobs.Go(a.applyAll)
	}
}

// newest is the generation that this agent has, in force or not.
func (a *agent) newest() int64 {
	a.apply.mu.Lock()
	defer a.apply.mu.Unlock()
	return a.apply.newest
}

// applyAll applies until nothing is pending.
func (a *agent) applyAll() {
	p := &a.apply
	for failures := 0; ; {
		p.mu.Lock()
		c := p.pending
		p.pending = nil
		if c == nil || a.ctx.Err() != nil {
			p.running = false
			p.mu.Unlock()
			return
		}
		ctx, cancel := context.WithCancel(a.ctx)
		p.cancel = cancel
		ready := p.ready
		select {
		case <-p.wake:
		default:
		}
		p.mu.Unlock()

		if !ready && failures < applyPardon {
			a.out.setState(StateConfiguring, p.done)
		}
		err := a.Configurer.Apply(ctx, c, a)
		cancel()

		p.mu.Lock()
		p.cancel = nil
		overtaken := p.pending != nil
		inPart := isIncomplete(err)
		if (err == nil || inPart) && !overtaken {
			p.ready, p.done = true, c.Generation
		}
		done := p.done
		p.mu.Unlock()
		switch {
		case a.ctx.Err() != nil:
		case overtaken:
			failures = 0
			continue
		case err == nil:
			a.applied(c.Generation, failures)
			failures = 0
		default:
			if inPart {
				a.inForce(c.Generation)
			}
			failures++
			a.failed(err, failures, ready || inPart, done)
		}
		p.once.Do(func() { close(p.first) })
		if err != nil && a.ctx.Err() == nil {
			a.applyAgain(c, failures)
		}
	}
}

// applied notes that generation is in force.
func (a *agent) applied(generation int64, failures int) {
	if failures > 0 {
		a.out.check(wire.Check{Name: checkConfiguration, OK: true})
	}
	a.inForce(generation)
	a.Log.Info("configuration applied", "generation", generation)
}

// inForce says that the node serves by this configuration.
func (a *agent) inForce(generation int64) {
	a.Stage("configured")
	a.Stage(StateReady)
	a.out.setState(StateReady, generation)
	a.saveState()
}

// isIncomplete reports whether some parts of a configuration could not be applied
// while all others are in force.
func isIncomplete(err error) bool {
	var p interface{ Incomplete() bool }
	return errors.As(err, &p) && p.Incomplete()
}

// failed notes that a configuration could not be applied. A node that was
// ready stays ready with the one before: people are working on it.
func (a *agent) failed(err error, failures int, ready bool, done int64) {
	text := short(Describe(err), maxCheckText)
	a.out.check(wire.Check{Name: checkConfiguration, Text: text})
	if !ready && failures >= applyPardon {
		a.out.setState(StateFailed, done)
	}
	if failures == 1 || failures == applyPardon {
		a.Log.Error("configuration failed", "error", text, "failures", failures)
	}
}

// applyAgain waits and makes c pending again, unless a newer one is.
func (a *agent) applyAgain(c *wire.NodeConfig, failures int) {
	select {
	case <-a.ctx.Done():
	case <-a.apply.wake:
	case <-a.Clock.After(backoff.After(failures, applyFirst, applyMost)):
	}
	a.apply.mu.Lock()
	defer a.apply.mu.Unlock()
	if a.apply.pending == nil {
		a.apply.pending = c
	}
}

// short makes one line of at most n bytes.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "..."
	}
	return s
}
