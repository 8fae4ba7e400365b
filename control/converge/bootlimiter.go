package converge

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// bootLimiter limits how many machines of a provider boot at once, over all
// clusters, where the provider does not limit that itself. Places are given to clusters in the order in which they asked.
type bootLimiter struct {
	limit map[string]int // by provider; absent: no limit

	mu       sync.Mutex
	held     map[muster.ClusterID]map[string]int
	last     map[muster.ClusterID]int // how many booted when it last settled
	waiting  []waiter
	breakers map[string]*breaker // by provider
}

// waiter is a cluster that got fewer places than it wanted.
type waiter struct {
	id muster.ClusterID
	of []string // providers of which it is short
	// tries: it is short only of providers in doubt. No place that is given back
	// helps it: it asks again in its turn.
	tries bool
}

// breaker is what is known of machines that were told to start, and did not.
type breaker struct {
	refused map[muster.MachineID]bool // since the last one that started
	next    time.Time                 // when another may be told to
}

// So many machines refuse to start, one after the other and none between them
// started, until only one at a time is told to, now and then: without power it
// would be the same for all of them.
const (
	breakAfter = 8
	probeEvery = 15 * time.Second
	mostTurns  = 20              // after which a cluster asks anyhow
	maxStart   = 2 * time.Second // after which a turn is over
)

// recordStart notes whether a machine that was told to start did. open: from now on
// one at a time is tried. wake: the clusters that waited, now that one started.
func (w *bootLimiter) recordStart(p string, id muster.MachineID, err error, now time.Time) (open bool, wake []muster.ClusterID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.breakers[p]
	if err == nil {
		delete(w.breakers, p)
		if d != nil && len(d.refused) >= breakAfter {
			wake = w.woken(func(waiter) bool { return true })
		}
		return false, wake
	}
	if d == nil {
		d = &breaker{refused: map[muster.MachineID]bool{}}
		w.breakers[p] = d
	}
	before := len(d.refused)
	d.refused[id] = true
	d.next = now.Add(probeEvery)
	return before < breakAfter && len(d.refused) >= breakAfter, nil
}

// broken is the doubt of a provider if it limits when a machine may be told to
// start, and nil otherwise.
func (w *bootLimiter) broken(p string) *breaker {
	if d := w.breakers[p]; d != nil && len(d.refused) >= breakAfter {
		return d
	}
	return nil
}

// bootsAtOnce are the limits that providers declare.
func bootsAtOnce(providers []provider.Provider) map[string]int {
	limit := map[string]int{}
	for _, p := range providers {
		limit[p.Name()] = p.Capabilities().BootsAtOnce
	}
	return limit
}

func newBootLimiter(limit map[string]int) *bootLimiter {
	return &bootLimiter{limit: limit, held: map[muster.ClusterID]map[string]int{}, last: map[muster.ClusterID]int{}, breakers: map[string]*breaker{}}
}

// woken lists the clusters that wait, in their order.
func (w *bootLimiter) woken(which func(waiter) bool) []muster.ClusterID {
	var ids []muster.ClusterID
	for _, x := range w.waiting {
		if which(x) {
			ids = append(ids, x.id)
		}
	}
	return ids
}

// reserve takes up to the wanted number of places for a cluster that holds
// booting ones already, and returns how many more it got of each provider, and
// after how long to ask again though nobody gave a place back (0: not). The rest
// is given back by settle.
func (w *bootLimiter) reserve(id muster.ClusterID, booting, wanted map[string]int, now time.Time) (got map[string]int, again time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	got = map[string]int{}
	hold := map[string]int{}
	for p, n := range booting {
		hold[p] = n
	}
	turn := slices.IndexFunc(w.waiting, func(x waiter) bool { return x.id == id })
	x, tried := waiter{id: id, tries: true}, false
	for p, n := range wanted {
		free := w.max(p) - w.taken(p, id) - hold[p]
		d := w.broken(p)
		if d != nil && n > 0 {
			before := w.ahead(p, turn)
			// Everybody asks in turn: all of them at once would ask in vain, but
			// one. Who does not ask in its turn blocks nobody for long.
			if late := now.Sub(d.next); late < 0 || before > 0 && late < maxStart {
				free = 0
			}
			if free = min(free, 1); free > 0 {
				d.next, tried, before = now.Add(probeEvery), true, len(w.waiting)
			}
			if wait := max(d.next.Sub(now), time.Second) + time.Duration(min(before, mostTurns))*probeEvery; again == 0 || wait < again {
				again = wait
			}
		}
		got[p] = max(0, min(n, free))
		hold[p] += got[p]
		if got[p] < n {
			x.of = append(x.of, p)
			x.tries = x.tries && d != nil
		}
	}
	w.held[id] = hold
	short := len(x.of) > 0
	if turn >= 0 && (tried || !short) { // the others come first now
		w.waiting, turn = slices.Delete(w.waiting, turn, turn+1), -1
	}
	switch {
	case short && turn < 0:
		w.waiting = append(w.waiting, x)
	case short:
		w.waiting[turn] = x
	}
	return got, again
}

// ahead is how many of those that wait for a provider stand before a place in
// the queue; -1 is its end.
func (w *bootLimiter) ahead(p string, turn int) int {
	if turn < 0 {
		turn = len(w.waiting)
	}
	n := 0
	for _, x := range w.waiting[:turn] {
		if slices.Contains(x.of, p) {
			n++
		}
	}
	return n
}

// settle says how many of the cluster's machines boot now. It returns the
// clusters that wait for a place and may find one now: all of them when this
// one has fewer machines booting than before, and the others when it did not
// use what it had reserved.
func (w *bootLimiter) settle(id muster.ClusterID, booting map[string]int) []muster.ClusterID {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, reserved, before := sum(booting), sum(w.held[id]), w.last[id]
	w.held[id], w.last[id] = booting, now
	if now == 0 {
		delete(w.held, id)
		delete(w.last, id)
	}
	switch {
	case now < before:
		return w.woken(func(x waiter) bool { return !x.tries })
	case now < reserved:
		return w.woken(func(x waiter) bool { return !x.tries && x.id != id })
	}
	return nil
}

func sum(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

// forget removes a cluster that ended, and returns those that wait.
func (w *bootLimiter) forget(id muster.ClusterID) []muster.ClusterID {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, id)
	delete(w.last, id)
	w.waiting = slices.DeleteFunc(w.waiting, func(x waiter) bool { return x.id == id })
	return w.woken(func(x waiter) bool { return !x.tries })
}

func (w *bootLimiter) max(p string) int {
	if n := w.limit[p]; n > 0 {
		return n
	}
	return math.MaxInt32
}

func (w *bootLimiter) taken(p string, except muster.ClusterID) int {
	n := 0
	for id, h := range w.held {
		if id != except {
			n += h[p]
		}
	}
	return n
}
