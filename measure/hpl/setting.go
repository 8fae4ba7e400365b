package hpl

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// blocks are the widths that are tried. The first is where the search begins:
// wide enough for a BLAS to be at its best, small enough for the work to be even.
func blocks() []int { return []int{192, 128, 256, 384} }

// common is a multiple of all widths: at such an order they are compared.
const common = 768

// settings are the ways to share the cores of a node among ranks and threads, each
// with its squarest grid, those that memory leaves room for first: a rank for each
// core, one for each domain of memory, one for the node.
func (s Site) settings() []muster.HPLSetting {
	counts := []int{s.Cores, s.Domains}
	if s.Domains == 1 || s.Cores <= 16 {
		// More threads than that, over several domains, read memory that is far.
		counts = append(counts, 1)
	}
	var out, without []muster.HPLSetting
	for i, n := range counts {
		if slices.Contains(counts[:i], n) {
			continue
		}
		p, q := grids(s.Nodes * n)[0][0], grids(s.Nodes * n)[0][1]
		at := muster.HPLSetting{NB: blocks()[0], P: p, Q: q, PerNode: n, Threads: s.Cores / n}
		if s.fits(at) > 0 {
			out = append(out, at)
		} else {
			without = append(without, at)
		}
	}
	if len(out) == 0 {
		return without
	}
	return out
}

// grids are the ways to lay ranks out in P rows and Q columns, P <= Q, the
// squarest first. At most two: flatter ones send more.
func grids(ranks int) [][2]int {
	var out [][2]int
	for p := 1; p*p <= ranks; p++ {
		if ranks%p == 0 {
			out = append(out, [2]int{p, ranks / p})
		}
	}
	slices.Reverse(out)
	return out[:min(2, len(out))]
}

// sameWay reports whether two settings differ in nothing but the order.
func sameWay(a, b muster.HPLSetting) bool {
	a.N, b.N = 0, 0
	return a == b
}
