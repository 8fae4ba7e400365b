package store

import (
	"sync"

	"github.com/muster-hpc/muster"
)

// cache keeps decoded records by the revision of their row, because decoding
// ten thousand machines for every placement would take longer than placing. A
// row is always read; only its decoding is saved. Revisions are never used
// twice within a process, so a change that was rolled back cannot be found
// under the number of another.
type cache[K comparable, V any] struct {
	clone func(V) V // what is handed out is the caller's to change

	mu sync.RWMutex
	m  map[K]cached[V]
}

type cached[V any] struct {
	rev int64
	v   V
}

// maxCached bounds a cache; when full it starts anew.
const maxCached = 20000

func (c *cache[K, V]) get(k K, rev int64) (v V, ok bool) {
	c.mu.RLock()
	e, ok := c.m[k]
	c.mu.RUnlock()
	if !ok || e.rev != rev {
		return v, false
	}
	return c.clone(e.v), true
}

func (c *cache[K, V]) put(k K, rev int64, v V) {
	v = c.clone(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= maxCached {
		c.m = map[K]cached[V]{}
	}
	c.m[k] = cached[V]{rev, v}
}

func cloneMachine(m muster.Machine) muster.Machine {
	f := &m.Facts
	f.CPUs, f.NICs, f.Accelerators, f.Modalias = copied(f.CPUs), copied(f.NICs), copied(f.Accelerators), copied(f.Modalias)
	f.NUMA = copied(f.NUMA)
	for i := range f.NUMA {
		f.NUMA[i].CPUs = copied(f.NUMA[i].CPUs)
	}
	m.Conditions = copied(m.Conditions)
	if m.LastClean != nil {
		r := *m.LastClean
		r.Steps = copied(r.Steps)
		m.LastClean = &r
	}
	if m.LastTest != nil {
		r := *m.LastTest
		r.Steps = copied(r.Steps)
		m.LastTest = &r
	}
	m.Faults = copied(m.Faults)
	for i := range m.Faults {
		m.Faults[i].People = copied(m.Faults[i].People)
	}
	return m
}

func cloneCluster(c muster.Cluster) muster.Cluster {
	c.Conditions = copied(c.Conditions)
	c.Spec.Packages, c.Spec.Users = copied(c.Spec.Packages), copied(c.Spec.Users)
	if c.Reason != nil {
		e := *c.Reason
		e.Problems = copied(e.Problems)
		c.Reason = &e
	}
	return c
}

// copied is slices.Clone with room for nothing more.
func copied[T any](s []T) []T {
	if s == nil {
		return nil
	}
	out := make([]T, len(s))
	copy(out, s)
	return out
}
