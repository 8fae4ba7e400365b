package store

import "github.com/muster-hpc/muster"

// What is handed out of the cache is the caller's to change.

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

func cloneNode(n muster.Node) muster.Node {
	n.Conditions, n.Stages = copied(n.Conditions), copied(n.Stages)
	return n
}
