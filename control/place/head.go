package place

import (
	"cmp"
	"strings"

	"github.com/muster-hpc/muster"
)

// chooseHead takes the machine of a separate head or of a login node, on the same fabric as
// the nodes: a service machine if there is one, else one that is of no use as
// a node of this request, else the smallest; one in a rack or at a leaf of the nodes before
// others alike. It returns nil when there is none.
func (p Planner) chooseHead(s uint64, within, fabric string, taken, compute, spare []*muster.Machine) *muster.Machine {
	used := make(map[*muster.Machine]bool, len(taken))
	for _, m := range taken {
		used[m] = true
	}
	near := map[string]int{}
	for _, m := range taken {
		near[p.zone(m, muster.WithinLeaf)]++
	}
	var best *muster.Machine
	bestSpare := false
	consider := func(m *muster.Machine, isSpare bool) {
		if p.fabric(m, within) != fabric || used[m] {
			return
		}
		if best == nil || cmp.Or(
			first(m.Facts.Service, best.Facts.Service),
			first(isSpare, bestSpare),
			p.wasteOf(m).compare(p.wasteOf(best)),
			first(near[p.zone(m, muster.WithinLeaf)] > 0, near[p.zone(best, muster.WithinLeaf)] > 0),
			compareHash(s, string(m.ID), string(best.ID)),
			strings.Compare(string(m.ID), string(best.ID)),
		) < 0 {
			best, bestSpare = m, isSpare
		}
	}
	for _, m := range spare {
		consider(m, true)
	}
	for _, m := range compute {
		consider(m, false)
	}
	return best
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
