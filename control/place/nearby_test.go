package place_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
	"pgregory.net/rapid"
)

func at(id, rack string, cores int) muster.Machine {
	return muster.Machine{ID: muster.MachineID(id), Facts: muster.Facts{Rack: rack, Cores: cores}}
}

func ids(list []muster.Machine) string {
	var out []muster.MachineID
	for _, m := range list {
		out = append(out, m.ID)
	}
	return fmt.Sprint(out)
}

func TestNearest(t *testing.T) {
	t.Parallel()
	near := []muster.Machine{at("a", "r1", 4), at("b", "r2", 4), at("c", "r2", 4)}
	free := []muster.Machine{at("m3", "r3", 4), at("m10", "r1", 4), at("m2", "r2", 8), at("m1", "r2", 4), at("m9", "r1", 4), at("m4", "r4", 4), at("m5", "r4", 4)}
	for n, want := range []string{"[]", "[m1]", "[m1 m2]", "[m1 m2 m9]", "[m1 m2 m9 m10]", "[m1 m2 m9 m10 m4]", "[m1 m2 m9 m10 m4 m5]", "[m1 m2 m9 m10 m4 m5 m3]", "[m1 m2 m9 m10 m4 m5 m3]"} {
		if got := ids(place.Nearby(nil, free, near, n)); got != want {
			t.Errorf("%d: %s, not %s", n, got, want)
		}
	}
	if got := place.Nearby(nil, free, nil, -1); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// The order of the lists does not matter, nobody is taken twice, and no rack
// of the cluster is passed over for another.
func TestNearestIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []muster.Machine {
			var list []muster.Machine
			for i := range rapid.IntRange(0, 12).Draw(t, name) {
				list = append(list, at(fmt.Sprintf("%s%d", name, i), fmt.Sprintf("r%d", rapid.IntRange(0, 4).Draw(t, "rack")), rapid.IntRange(1, 2).Draw(t, "cores")))
			}
			return list
		}
		free, near := draw("free"), draw("near")
		n := rapid.IntRange(0, 14).Draw(t, "n")
		got := place.Nearby(nil, free, near, n)
		again := place.Nearby(nil, rapid.Permutation(free).Draw(t, "free"), rapid.Permutation(near).Draw(t, "near"), n)
		if ids(got) != ids(again) || len(got) != min(n, len(free)) {
			t.Fatalf("%v and %v of %d", ids(got), ids(again), n)
		}
		count := map[string]int{}
		for _, m := range near {
			count[m.Facts.Rack]++
		}
		for _, m := range free {
			if slices.ContainsFunc(got, func(g muster.Machine) bool { return g.ID == m.ID }) {
				continue
			}
			for _, g := range got {
				if count[g.Facts.Rack] < count[m.Facts.Rack] {
					t.Fatalf("%s of %s is taken, %s of %s is not", g.ID, g.Facts.Rack, m.ID, m.Facts.Rack)
				}
			}
		}
	})
}
