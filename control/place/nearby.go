package place

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// Nearby takes n of the candidates, or as many as there are, such that they
// stand near machines that serve already: from the racks that hold most of
// near first, then from as few other racks as possible. Doubtful machines come last. In a rack the smaller
// machine comes first, then the lower ID. The order of neither list matters.
func Nearby(candidates []muster.Machine, near []muster.Machine, n int) []muster.Machine {
	list := make([]*muster.Machine, len(candidates))
	for i := range candidates {
		list[i] = &candidates[i]
	}
	out := make([]muster.Machine, 0, max(0, min(n, len(list))))
	for _, m := range nearby(list, near, n) {
		out = append(out, *m)
	}
	return out
}

func nearby(candidates []*muster.Machine, near []muster.Machine, n int) []*muster.Machine {
	beside, size := make(map[string]int), rackSizes(candidates)
	for i := range near {
		beside[near[i].Facts.Rack]++
	}
	list := slices.Clone(candidates)
	slices.SortFunc(list, func(a, b *muster.Machine) int {
		x, y := a.Facts.Rack, b.Facts.Rack
		return cmp.Or(
			cmp.Compare(Planner{}.wasteOf(a).doubt, Planner{}.wasteOf(b).doubt),
			cmp.Compare(beside[y], beside[x]),
			cmp.Compare(size[y], size[x]),
			strings.Compare(x, y),
			Planner{}.wasteOf(a).compare(Planner{}.wasteOf(b)),
			compareNatural(string(a.ID), string(b.ID)),
		)
	})
	return list[:max(0, min(n, len(list)))]
}
