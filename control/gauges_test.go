package control

import (
	"maps"
	"testing"

	"github.com/muster-hpc/muster"
)

// A host with a set of one machine of two cores and one of two machines of one core has at most
// two machines in use: never three.
func TestMachinePhasesOfSets(t *testing.T) {
	t.Parallel()
	machine := func(set string, phase muster.MachinePhase, parts ...string) muster.Machine {
		return muster.Machine{Phase: phase, Facts: muster.Facts{Cores: len(parts), Set: set, Parts: parts}}
	}
	const free, active, cleaning = muster.MachineFree, muster.MachineActive, muster.MachineCleaning
	for _, test := range []struct {
		name            string
		big, one, other muster.MachinePhase
		want            map[muster.MachinePhase]int
	}{
		{"all are free", free, free, free, map[muster.MachinePhase]int{free: 2}},
		{"the large one is in use", active, free, free, map[muster.MachinePhase]int{active: 1}},
		{"a small one is", free, active, free, map[muster.MachinePhase]int{active: 1, free: 1}},
		{"both small ones are", free, active, active, map[muster.MachinePhase]int{active: 2}},
		{"one is being cleaned", free, cleaning, free, map[muster.MachinePhase]int{cleaning: 1, free: 1}},
	} {
		list := []muster.Machine{machine("large", test.big, "0", "1"), machine("small", test.one, "0"), machine("small", test.other, "1")}
		if got := machinePhases(list); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, not %v", test.name, got, test.want)
		}
	}
}
