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
	waiting []muster.ClusterID
	doubts  map[string]*doubt // by provider
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
			wake = slices.Clone(w.waiting)
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
	short := false
	for p, n := range wanted {
		taken := w.taken(p, id) + hold[p]
		free := w.max(p) - taken
		if next, doubtful := w.doubtful(p); doubtful && n > 0 {
			if free = 1 - min(taken, 1); now.Before(next) {
				free = 0
			}
			if wait := max(next.Sub(now), time.Second); again == 0 || wait < again {
				again = wait
			}
		}
		got[p] = max(0, min(n, free))
		hold[p] += got[p]
		short = short || got[p] < n
	}
	w.held[id] = hold
	if i := slices.Index(w.waiting, id); short && i < 0 {
		w.waiting = append(w.waiting, id)
	} else if !short && i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
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
		return slices.Clone(w.waiting)
	case now < reserved:
		return slices.DeleteFunc(slices.Clone(w.waiting), func(x muster.ClusterID) bool { return x == id })
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
	w.waiting = slices.DeleteFunc(w.waiting, func(x muster.ClusterID) bool { return x == id })
	return slices.Clone(w.waiting)
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
