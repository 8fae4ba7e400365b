// Package cputree builds a topology from what is known of each hardware thread.
package cputree

import (
	"cmp"
	"slices"

	"github.com/muster-hpc/muster"
)

// Thread is a hardware thread with what it is part of. Core and the sharers of caches are
// keys: they tell things apart, whatever they look like.
type Thread struct {
	Number  int
	Package int
	Node    int
	Memory  int64 // of its memory node, in bytes
	Core    string
	Caches  []Cache // that hold data, from near to far
}

// Cache is one cache as one thread sees it.
type Cache struct {
	Level   int
	Size    int64  // bytes
	Sharers string // the key
}

// Assemble builds a topology from its threads; far are memory nodes without any. It sorts threads.
func Assemble(source string, threads []Thread, far []muster.MemoryNode) *muster.Topology {
	t := &muster.Topology{Source: source}
	slices.SortStableFunc(threads, func(a, b Thread) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Number, b.Number))
	})
	for len(threads) > 0 {
		pkg := muster.Package{ID: threads[0].Package}
		for len(threads) > 0 && threads[0].Package == pkg.ID {
			n := 1
			for n < len(threads) && threads[n].Package == pkg.ID && threads[n].Node == threads[0].Node {
				n++
			}
			pkg.Nodes = append(pkg.Nodes, muster.MemoryNode{ID: threads[0].Node, Memory: threads[0].Memory, Groups: groups(threads[:n])})
			threads = threads[n:]
		}
		t.Packages = append(t.Packages, pkg)
	}
	if len(t.Packages) > 0 { // which of them is nearest to memory of its own is not told
		t.Packages[0].Nodes = append(t.Packages[0].Nodes, far...)
	}
	return t
}

// groups sorts the threads of one memory node by their last-level cache.
func groups(threads []Thread) []muster.CoreGroup {
	last := func(t Thread) string {
		if len(t.Caches) == 0 {
			return ""
		}
		return t.Caches[len(t.Caches)-1].Sharers
	}
	var order []string
	by := map[string][]Thread{}
	for _, t := range threads {
		k := last(t)
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], t)
	}
	list := make([]muster.CoreGroup, len(order))
	for i, k := range order {
		list[i] = group(by[k])
	}
	return list
}

func group(threads []Thread) muster.CoreGroup {
	var g muster.CoreGroup
	cores := map[string]int{}
	sharing := map[Cache]int{}
	for _, t := range threads {
		i, ok := cores[t.Core]
		if !ok {
			i = len(g.Cores)
			cores[t.Core] = i
			g.Cores = append(g.Cores, nil)
		}
		g.Cores[i] = append(g.Cores[i], t.Number)
		for _, c := range t.Caches {
			sharing[c]++
		}
	}
	kinds := map[muster.Cache]int{}
	for c, n := range sharing {
		kinds[muster.Cache{Level: c.Level, Size: c.Size, Shared: n}]++
	}
	for c, n := range kinds {
		c.Count = n
		g.Caches = append(g.Caches, c)
	}
	slices.SortFunc(g.Caches, func(a, b muster.Cache) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(b.Size, a.Size), cmp.Compare(b.Shared, a.Shared))
	})
	return g
}
