package topology

import "github.com/muster-hpc/muster"

// Apart finds which switch is to blame where some machines of a cluster do not reach the others.
type Apart struct {
	k             *Tree
	lost, reached []int // how many below each stand
}

// Apart takes the machines that are lost, and those that reach each other.
func (k *Tree) Apart(lost, reached []muster.MachineID) Apart {
	return Apart{k, k.sums(lost), k.sums(reached)}
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

// Inside reports whether a machine stands in a stand, or in what stands in it. The stand 0 has none.
func (k *Tree) Inside(id muster.MachineID, stand int) bool { return k.inside(k.at[id], stand) }
