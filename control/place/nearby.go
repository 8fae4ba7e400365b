package place

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
)

// Nearby takes n of the candidates, or as many as there are, such that they
// stand near machines that serve already: from the racks that hold most of
// near first, then from as few other racks as possible. Doubtful machines come last. In a rack the smaller
// machine comes first, then the lower ID. The order of neither list matters.
//
// With a tree (nil: there is none) it is those with the fewest switches to near, and of
// these those from the fullest stands.
func Nearby(tree *topology.Tree, candidates []muster.Machine, near []muster.Machine, n int) []muster.Machine {
	list := make([]*muster.Machine, len(candidates))
	for i := range candidates {
		list[i] = &candidates[i]
	}
	out := make([]muster.Machine, 0, max(0, min(n, len(list))))
	for _, m := range nearby(tree, list, near, n) {
		out = append(out, *m)
	}
	return out
}

func nearby(tree *topology.Tree, candidates []*muster.Machine, near []muster.Machine, n int) []*muster.Machine {
	beside, size := make(map[string]int), rackSizes(candidates)
	for i := range near {
		beside[near[i].Facts.Rack]++
	}
	far, order := func(*muster.Machine) int { return 0 }, func(*muster.Machine) int { return 0 }
	if tree != nil {
		far, order = distances(tree, near), func(m *muster.Machine) int { return tree.Order(m.ID) }
	}
	list := slices.Clone(candidates)
	slices.SortFunc(list, func(a, b *muster.Machine) int {
		x, y := a.Facts.Rack, b.Facts.Rack
		return cmp.Or(
			cmp.Compare(Planner{}.wasteOf(a).doubt, Planner{}.wasteOf(b).doubt),
			cmp.Compare(far(a), far(b)),
			cmp.Compare(beside[y], beside[x]),
			cmp.Compare(size[y], size[x]),
			strings.Compare(x, y),
			cmp.Compare(order(a), order(b)),
			Planner{}.wasteOf(a).compare(Planner{}.wasteOf(b)),
			compareNatural(string(a.ID), string(b.ID)),
		)
	})
	return list[:max(0, min(n, len(list)))]
}
