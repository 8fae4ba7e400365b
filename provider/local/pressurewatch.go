package local

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
)

const (
	// pressureEvery is how often the host's memory is looked at: one small file.
	pressureEvery = 2 * time.Second
	// startWait is how long a start waits for a host that is short of memory.
	startWait = time.Minute
)

// watchPressure looks at the host's memory until ctx ends. Short of it, nothing is
// started; the machine whose uncharged memory is the cause, if one clearly is, is
// stopped, and no other ever is.
func (p *Provider) watchPressure(ctx context.Context) {
	tick := time.NewTicker(pressureEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.lookAtPressure(ctx)
		}
	}
}

// lookAtPressure looks once.
func (p *Provider) lookAtPressure(ctx context.Context) {
	now, err := p.pressure()
	if err != nil {
		return
	}
	why := now.short(p.reserve)
	p.mu.Lock()
	before := p.shortOf
	p.shortOf = why
	p.mu.Unlock()
	switch {
	case why == "" && before != "":
		p.cfg.Log.Info("host memory pressure cleared")
	case why == "":
		return
	case before == "":
		p.cfg.Log.Warn("host memory low: machine starts paused", "reason", why)
	}
	if why != "" {
		p.stopCause(ctx, now, before == "")
	}
}

// stopCause stops the machine that a shortage is due to.
func (p *Provider) stopCause(ctx context.Context, now pressure, tell bool) {
	var costs []cost
	for _, m := range p.all(nil) {
		if alive, err := p.groups.populated(string(m.id)); err != nil || !alive {
			continue
		}
		c, err := p.countCost(m)
		if err != nil {
			p.cfg.Log.Warn("reading kernel memory usage failed", "machine", m.id, "error", err)
		}
		costs = append(costs, c)
	}
	c := cause(costs, now.total)
	if c == nil {
		if tell {
			p.cfg.Log.Warn("host memory low: no machine to blame",
				"hint", "look at `muster top`, and at what else runs on this host")
		}
		return
	}
	m, err := p.machine(c.machine)
	if err != nil {
		return
	}
	p.cfg.Log.Error("machine stopped: host memory low", "machine", m.id, "has", c.String())
	m.console.mark(p.cfg.Clock.Now(), "it was stopped: this host is short of memory, and it has %s", c)
	if err := p.groups.kill(ctx, string(m.id)); err != nil {
		p.cfg.Log.Error("stopping machine failed", "machine", m.id, "error", err)
	}
	m.mu.Lock()
	m.fault = muster.Errorf(muster.EConflict, "it was stopped: the host was short of memory, and it had %s", c).Because(muster.ReasonMemoryShort).
		WithHint("see what a slice may have in docs/operators/security.md; who needs more gets a bare machine")
	m.mu.Unlock()
	p.changed(m.id)
}

// awaitMemory waits until the host is not short of memory any more.
func (p *Provider) awaitMemory(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for {
		p.mu.Lock()
		why := p.shortOf
		p.mu.Unlock()
		if why == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return muster.Errorf(muster.EUnavailable, "this host is short of memory: %s", why).Because(muster.ReasonMemoryShort).
				WithHint("nothing is started on it until it has some; see the server's log for whose it is")
		case <-time.After(pressureEvery / 4):
		}
	}
}
