package converge

import (
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// defaultWindow suits machines that are more than slices of this host.
const defaultWindow = 64

// window limits how many machines of a provider boot at once, over all
// clusters. Places are given to clusters in the order in which they asked.
type window struct {
	limit map[string]int

	mu      sync.Mutex
	held    map[muster.ClusterID]map[string]int
	last    map[muster.ClusterID]int // how many booted when it last settled
	waiting []waiter
	doubts  map[string]*doubt // by provider
}

// waiter is a cluster that got fewer places than it wanted.
type waiter struct {
	id muster.ClusterID
	// tries: it is short only of providers in doubt. No place that is given back
	// helps it: it asks again in its turn.
	tries bool
}

// doubt is what is known of machines that were told to start, and did not.
type doubt struct {
	refused map[muster.MachineID]bool // since the last one that started
	next    time.Time                 // when another may be told to
}

// So many machines refuse to start, one after the other and none between them
// started, until only one at a time is told to, now and then: without power it
// would be the same for all of them.
const (
	doubtAfter = 8
	doubtEvery = 15 * time.Second
	mostTurns  = 20 // after which a cluster asks anyhow
)

// told notes whether a machine that was told to start did. open: from now on
// one at a time is tried. wake: the clusters that waited, now that one started.
func (w *window) told(p string, id muster.MachineID, err error, now time.Time) (open bool, wake []muster.ClusterID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.doubts[p]
	if err == nil {
		delete(w.doubts, p)
		if d != nil && len(d.refused) >= doubtAfter {
			wake = w.woken(func(waiter) bool { return true })
		}
		return false, wake
	}
	if d == nil {
		d = &doubt{refused: map[muster.MachineID]bool{}}
		w.doubts[p] = d
	}
	before := len(d.refused)
	d.refused[id] = true
	d.next = now.Add(doubtEvery)
	return before < doubtAfter && len(d.refused) >= doubtAfter, nil
}

// doubtful tells when another machine may be told to start, if that is limited.
func (w *window) doubtful(p string) (time.Time, bool) {
	if d := w.doubts[p]; d != nil && len(d.refused) >= doubtAfter {
		return d.next, true
	}
	return time.Time{}, false
}

func newWindow(limit map[string]int) *window {
	return &window{limit: limit, held: map[muster.ClusterID]map[string]int{}, last: map[muster.ClusterID]int{}, doubts: map[string]*doubt{}}
}

// woken lists the clusters that wait, in their order.
func (w *window) woken(which func(waiter) bool) []muster.ClusterID {
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
func (w *window) reserve(id muster.ClusterID, booting, wanted map[string]int, now time.Time) (got map[string]int, again time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	got = map[string]int{}
	hold := map[string]int{}
	for p, n := range booting {
		hold[p] = n
	}
	turn := slices.IndexFunc(w.waiting, func(x waiter) bool { return x.id == id })
	short, tries := false, true
	for p, n := range wanted {
		taken := w.taken(p, id) + hold[p]
		free := w.max(p) - taken
		next, doubtful := w.doubtful(p)
		if doubtful && n > 0 {
			if free = 1 - min(taken, 1); now.Before(next) {
				free = 0
			}
			// Everybody asks in turn: all of them at once would ask in vain, but one.
			before := turn
			if turn < 0 || free > 0 {
				before = len(w.waiting)
			}
			if wait := max(next.Sub(now), time.Second) + time.Duration(min(before, mostTurns))*doubtEvery; again == 0 || wait < again {
				again = wait
			}
		}
		got[p] = max(0, min(n, free))
		hold[p] += got[p]
		if got[p] < n {
			short, tries = true, tries && doubtful
		}
		if doubtful && got[p] > 0 && turn >= 0 { // the others come first now
			w.waiting, turn = slices.Delete(w.waiting, turn, turn+1), -1
		}
	}
	w.held[id] = hold
	switch x := (waiter{id, tries}); {
	case short && turn < 0:
		w.waiting = append(w.waiting, x)
	case short:
		w.waiting[turn] = x
	case turn >= 0:
		w.waiting = slices.Delete(w.waiting, turn, turn+1)
	}
	return got, again
}

// settle says how many of the cluster's machines boot now. It returns the
// clusters that wait for a place and may find one now: all of them when this
// one has fewer machines booting than before, and the others when it did not
// use what it had reserved.
func (w *window) settle(id muster.ClusterID, booting map[string]int) []muster.ClusterID {
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
func (w *window) forget(id muster.ClusterID) []muster.ClusterID {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, id)
	delete(w.last, id)
	w.waiting = slices.DeleteFunc(w.waiting, func(x waiter) bool { return x.id == id })
	return w.woken(func(x waiter) bool { return !x.tries })
}

func (w *window) max(p string) int {
	if n := w.limit[p]; n > 0 {
		return n
	}
	return defaultWindow
}

func (w *window) taken(p string, except muster.ClusterID) int {
	n := 0
	for id, h := range w.held {
		if id != except {
			n += h[p]
		}
	}
	return n
}
