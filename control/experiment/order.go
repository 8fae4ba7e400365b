package experiment

import (
	"math/bits"
	"math/rand/v2"

	"github.com/muster-hpc/muster"
)

// Place is one slot of the order: which cell is launched in which visit of which block.
type Place struct {
	Slot  int
	Leg   int // a leg visits each block once: first to last, and the next one back
	Visit int // visits that follow each other on one block are one
	Block int
	Cell  int
}

// order finds the slots of a plan.
type order struct {
	plan  muster.ExperimentPlan
	cells [][]int // of each block
	perms map[[3]int][]int
}

func orderOf(p muster.ExperimentPlan) *order {
	o := &order{plan: p, cells: make([][]int, len(p.Blocks)), perms: map[[3]int][]int{}}
	for i, c := range p.Cells {
		o.cells[c.Block] = append(o.cells[c.Block], i)
	}
	return o
}

// leg is how many slots a leg has.
func (o *order) leg() int { return len(o.plan.Cells) * o.plan.PerVisit }

// Slots is how many launches a plan has at most.
func Slots(p muster.ExperimentPlan) int { return len(p.Cells) * (p.Max / p.PerVisit) * p.PerVisit }

// at finds a slot.
func (o *order) at(slot int) Place {
	leg, rest := slot/o.leg(), slot%o.leg()
	n := len(o.cells)
	for i := range n {
		b := i
		if leg%2 == 1 {
			b = n - 1 - i
		}
		size := len(o.cells[b]) * o.plan.PerVisit
		if rest >= size {
			rest -= size
			continue
		}
		visit := 0
		if n > 1 {
			visit = leg*(n-1) + i
		}
		round := rest / len(o.cells[b])
		return Place{Slot: slot, Leg: leg, Visit: visit, Block: b, Cell: o.cells[b][o.shuffled(leg, b, round)[rest%len(o.cells[b])]]}
	}
	return Place{Slot: slot, Leg: leg} // a plan without cells
}

// shuffled is the order of the cells of a block in one round. It is made of the seed alone, and
// by arithmetic that no other version of Go changes.
func (o *order) shuffled(leg, block, round int) []int {
	key := [3]int{leg, block, round}
	if p, ok := o.perms[key]; ok {
		return p
	}
	random := rand.NewPCG(o.plan.Seed, uint64(leg)<<40|uint64(block)<<20|uint64(round)) //nolint:gosec // none is negative
	perm := make([]int, len(o.cells[block]))
	for i := range perm {
		high, _ := bits.Mul64(random.Uint64(), uint64(i+1)) //nolint:gosec // not negative
		j := int(high)                                      //nolint:gosec // at most i
		perm[i] = perm[j]
		perm[j] = i
	}
	o.perms[key] = perm
	return perm
}
