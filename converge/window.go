package converge

import (
	"slices"
	"sync"

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
}

func newWindow(limit map[string]int) *window {
	return &window{limit: limit, held: map[muster.ClusterID]map[string]int{}, last: map[muster.ClusterID]int{}}
}

// reserve takes up to the wanted number of places for a cluster that holds
// booting ones already, and returns how many more it got of each provider. The
// rest is given back by settle.
func (w *window) reserve(id muster.ClusterID, booting, wanted map[string]int) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := map[string]int{}
	hold := map[string]int{}
	for p, n := range booting {
		hold[p] = n
	}
	short := false
	for p, n := range wanted {
		free := w.max(p) - w.taken(p, id) - hold[p]
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
	return got
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
