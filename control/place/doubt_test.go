package place

import (
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
)

// A machine that failed lately is given when there is no other, and not before: whatever
// the racks and sizes say for it.
func TestDoubtfulMachinesComeLast(t *testing.T) {
	t.Parallel()
	doubtful := func(m *muster.Machine) *muster.Machine {
		m.Conditions = []muster.Condition{{Code: muster.ConditionDoubtful}}
		return m
	}
	list := []*muster.Machine{
		doubtful(machine("a1", "a", 2)), doubtful(machine("a2", "a", 2)), doubtful(machine("a3", "a", 2)),
		machine("b1", "b", 8), machine("d1", "d", 8),
	}
	for _, p := range []muster.Placement{muster.PlacePack, muster.PlaceSpread, muster.PlaceAny} {
		for n, want := range []int{0, 0, 0, 1, 2, 3} {
			got := 0
			for _, m := range (Planner{}).choose(p, 7, list, n) {
				if m.IsDoubtful() {
					got++
				}
			}
			if got != want {
				t.Errorf("%s, %d machines: %d doubtful ones, not %d", p, n, got, want)
			}
		}
	}
	near := []muster.Machine{*machine("a9", "a", 2), *machine("a8", "a", 2)}
	got := nearby(nil, list, near, 3)
	if len(got) != 3 || slices.ContainsFunc(got[:2], (*muster.Machine).IsDoubtful) || !got[2].IsDoubtful() {
		t.Errorf("nearest: %v %v %v", got[0].ID, got[1].ID, got[2].ID)
	}
}
