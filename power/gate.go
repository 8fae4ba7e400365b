package power

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// Limits are how many machines of a rack may be switched on: their power
// supplies draw most at that moment. Zero means no limit.
type Limits struct {
	PerSecond int
	// No more than InWindow within Window.
	Window   time.Duration
	InWindow int
}

// DefaultLimits are careful: a rack of 40 takes a bit over a minute.
func DefaultLimits() Limits { return Limits{PerSecond: 2, Window: 30 * time.Second, InWindow: 20} }

// Waiting is one machine that waits to be switched on.
type Waiting struct {
	Machine muster.MachineID
	For     string
	Place   int // 1 is next
	ETA     time.Time
}

// gate lets the machines of one rack on, in turn among those who want them.
type gate struct {
	clock  muster.Clock
	limits Limits

	mu      sync.Mutex
	granted []time.Time // within the longer of a second and the window
	owners  []string    // those who wait, next first
	waiting map[string][]*ticket
	pumping bool
}

type ticket struct {
	machine muster.MachineID
	ready   chan struct{}
}

func newGate(clock muster.Clock, limits Limits) *gate {
	return &gate{clock: clock, limits: limits, waiting: map[string][]*ticket{}}
}

// enter returns when the machine may be switched on.
func (g *gate) enter(ctx context.Context, m muster.MachineID, owner string) error {
	t := &ticket{machine: m, ready: make(chan struct{})}
	g.mu.Lock()
	if len(g.waiting[owner]) == 0 {
		g.owners = append(g.owners, owner)
	}
	g.waiting[owner] = append(g.waiting[owner], t)
	if !g.pumping {
		g.pumping = true
		go g.pump()
	}
	g.mu.Unlock()
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		g.leave(owner, t)
		return context.Cause(ctx)
	}
}

func (g *gate) leave(owner string, t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.waiting[owner]
	if i := slices.Index(q, t); i >= 0 {
		g.set(owner, slices.Delete(q, i, i+1))
	}
}

func (g *gate) set(owner string, q []*ticket) {
	if len(q) > 0 {
		g.waiting[owner] = q
		return
	}
	delete(g.waiting, owner)
	if i := slices.Index(g.owners, owner); i >= 0 {
		g.owners = slices.Delete(g.owners, i, i+1)
	}
}

// pump gives out places while somebody waits.
func (g *gate) pump() {
	for {
		g.mu.Lock()
		if len(g.owners) == 0 {
			g.pumping = false
			g.mu.Unlock()
			return
		}
		now := g.clock.Now()
		at := g.limits.next(g.granted, now)
		if !at.After(now) {
			close(g.pop().ready)
			g.granted = g.limits.trim(append(g.granted, now), now)
			g.mu.Unlock()
			continue
		}
		g.mu.Unlock()
		<-g.clock.After(at.Sub(now))
	}
}

// pop takes the first of the owner whose turn it is, who then goes behind the
// others.
func (g *gate) pop() *ticket {
	owner := g.owners[0]
	q := g.waiting[owner]
	g.owners = g.owners[1:]
	if len(q) > 1 {
		g.owners = append(g.owners, owner)
		g.waiting[owner] = q[1:]
	} else {
		delete(g.waiting, owner)
	}
	return q[0]
}

// queue lists who waits, in the order in which they will be let on.
func (g *gate) queue() []Waiting {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	granted := slices.Clone(g.granted)
	owners := slices.Clone(g.owners)
	taken := map[string]int{}
	var list []Waiting
	for len(owners) > 0 {
		owner := owners[0]
		owners = owners[1:]
		t := g.waiting[owner][taken[owner]]
		if taken[owner]++; taken[owner] < len(g.waiting[owner]) {
			owners = append(owners, owner)
		}
		now = g.limits.next(granted, now)
		granted = g.limits.trim(append(granted, now), now)
		list = append(list, Waiting{Machine: t.machine, For: owner, Place: len(list) + 1, ETA: now})
	}
	return list
}

// next is when the next one may go on, now or later.
func (l Limits) next(granted []time.Time, now time.Time) time.Time {
	at := now
	for _, r := range []struct {
		n      int
		within time.Duration
	}{{l.PerSecond, time.Second}, {l.InWindow, l.Window}} {
		if r.n <= 0 || r.within <= 0 || len(granted) < r.n {
			continue
		}
		// The one that is r.n back must have left the window.
		if free := granted[len(granted)-r.n].Add(r.within); free.After(at) {
			at = free
		}
	}
	return at
}

// trim forgets what no window reaches.
func (l Limits) trim(granted []time.Time, now time.Time) []time.Time {
	longest := max(time.Second, l.Window)
	i := 0
	for i < len(granted) && !granted[i].Add(longest).After(now) {
		i++
	}
	return granted[i:]
}
