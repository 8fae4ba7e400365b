package topology

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// Apart finds which switch is to blame where the head of a cluster does not reach some of its machines.
type Apart struct {
	k             *Tree
	head          int   // what the head's machine stands in
	lost, reached []int // how many below each stand; the head is reached
	// Proven: the head reaches at least one other machine, so that its own switch works.
	Proven bool
	// Several: the head reaches nobody, and they stand behind several switches: its own may be to blame.
	Several bool
}

// Apart takes the machine of the head, those that it does not reach, and those that it does.
func (k *Tree) Apart(head muster.MachineID, lost, reached []muster.MachineID) Apart {
	a := Apart{k: k, head: k.at[head], lost: k.sums(lost), reached: k.sums(append(slices.Clone(reached), head)), Proven: len(reached) > 0}
	first := 0
	for _, id := range lost {
		if v := a.Stand(id); v > 0 && !a.Proven {
			a.Several = a.Several || first > 0 && v != first
			first = v
		}
	}
	return a
}

// Head is the number of the stand of the head that is to blame: the head reaches nobody, and this is the smallest
// chassis or leaf that it shares with one of those. 0: it is not to blame, or that is not known.
func (a Apart) Head() int {
	if a.Proven {
		return 0
	}
	leaf := a.k.leafOf(a.head)
	for v := a.head; v > 0; v = a.k.Stands[v].Parent {
		if a.lost[v] > 0 {
			return v
		}
		if leaf == 0 || v == leaf { // what is above is not the head's own
			break
		}
	}
	return 0
}

// Stand is the number of what a lost machine stands in that explains why it is not reached: nothing in it is.
// It is no larger than the lost machines need: a chassis where only those of one are lost. 0: it is not known
// where the machine stands, or it stands beside one that is reached.
func (a Apart) Stand(id muster.MachineID) int {
	v := a.k.at[id]
	if v == 0 || a.reached[v] > 0 {
		return 0
	}
	top := v
	for up := a.k.Stands[top].Parent; up > 0 && a.reached[up] == 0; up = a.k.Stands[top].Parent {
		top = up
	}
	for v != top && a.lost[v] < a.lost[top] {
		v = a.k.Stands[v].Parent
	}
	return v
}

// Named is the number of a stand; 0: there is none of that name.
func (k *Tree) Named(name string) int { return k.byName[name] }

// Inside reports whether a machine stands in a stand, or in what stands in it. The stand 0 has none.
func (k *Tree) Inside(id muster.MachineID, stand int) bool { return k.inside(k.at[id], stand) }
