package place

import (
	"cmp"

	"github.com/muster-hpc/muster"
)

// waste measures how much machine is used up. All machines compared satisfy
// the request, so the smaller one leaves more to others. Accelerators count
// first: a node that needs none should not hold any. Before all that: a machine that
// failed lately is given last.
type waste struct {
	doubt        int
	accelerators int
	cores        int
	memory       int64
	// blocks are what it keeps of other sets from being used. Machines that block the same
	// one lie together, so that as few as possible are blocked.
	blocks Blocks
}

func (p Planner) wasteOf(m *muster.Machine) waste {
	w := waste{cores: m.Facts.Cores, memory: m.Facts.Memory, blocks: p.Blocks[m.ID]}
	if m.IsDoubtful() {
		w.doubt = 1
	}
	for _, d := range m.Facts.Accelerators {
		w.accelerators += d.Count
	}
	return w
}

// groupWaste is that of the group's smallest machine.
func (p Planner) groupWaste(g *group) waste {
	least := p.wasteOf(g.machines[0])
	for _, m := range g.machines[1:] {
		if w := p.wasteOf(m); w.compare(least) < 0 {
			least = w
		}
	}
	return least
}

func (w waste) compare(o waste) int {
	return cmp.Or(
		cmp.Compare(w.doubt, o.doubt),
		cmp.Compare(w.accelerators, o.accelerators),
		cmp.Compare(w.cores, o.cores),
		cmp.Compare(w.memory, o.memory),
		w.blocks.compare(o.blocks),
	)
}
