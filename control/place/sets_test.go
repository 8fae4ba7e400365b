package place

import (
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
)

// A plan has machines of one set, and takes those that block the fewest of another.
func TestSets(t *testing.T) {
	t.Parallel()
	m := func(id, set string, cores int, parts ...string) muster.Machine {
		return muster.Machine{ID: muster.MachineID(id), Phase: muster.MachineFree, Facts: muster.Facts{Class: set, Set: set, Rack: "r", Cores: cores, Parts: parts}}
	}
	site := []muster.Machine{
		m("d1", "dense", 2, "p0", "p1"), m("d2", "dense", 2, "p2", "p3"), m("d3", "dense", 2, "p4", "p5"),
		m("s0", "spread", 1, "p0"), m("s1", "spread", 1, "p1"), m("s2", "spread", 1, "p2"), m("s3", "spread", 1, "p3"), m("s4", "spread", 1, "p4"), m("s5", "spread", 1, "p5"),
	}
	plan := func(id string, spec muster.Spec, held map[string]bool) []muster.MachineID {
		var free []*muster.Machine
		for i := range site {
			if !slices.ContainsFunc(site[i].Facts.Parts, func(p string) bool { return held[p] }) {
				free = append(free, &site[i])
			}
		}
		p := Planner{Blocks: BlocksOf(site, held)}
		got, ok := p.Plan(muster.ClusterID(id), spec, free, nil)
		if !ok {
			return nil
		}
		var ids []muster.MachineID
		for _, a := range got.Assign {
			ids = append(ids, a.Machine)
		}
		slices.Sort(ids)
		return ids
	}
	spread := muster.Spec{Nodes: 2, Min: 2, Head: muster.HeadShared, Placement: muster.PlacePack}
	for _, id := range []string{"c-a", "c-b", "c-c", "c-d", "c-e"} {
		got := plan(id, spread, nil)
		if len(got) != 2 || (int(got[0][1]-'0')/2 != int(got[1][1]-'0')/2) {
			t.Errorf("%s: %v block two machines", id, got)
		}
		// d2 is kept from being used already: what shares with it blocks nothing more.
		one := spread
		one.Nodes, one.Min = 1, 1
		if got := plan(id, one, map[string]bool{"p2": true}); !slices.Equal(got, []muster.MachineID{"s3"}) {
			t.Errorf("%s: %v", id, got)
		}
	}
	mixed := muster.Spec{Nodes: 6, Min: 6, Mixed: true, Head: muster.HeadShared, Placement: muster.PlaceAny}
	if got := plan("c-x", mixed, nil); len(got) != 6 || got[0] != "s0" {
		t.Errorf("mixed: %v", got)
	}
	mixed.Nodes, mixed.Min = 7, 7
	if got := plan("c-x", mixed, nil); got != nil {
		t.Errorf("seven of six: %v", got)
	}
	separate := muster.Spec{Nodes: 3, Min: 3, Machine: muster.Constraints{}, Head: muster.HeadSeparate, Placement: muster.PlaceAny}
	if got := plan("c-y", separate, nil); len(got) != 4 || got[0][0] != 's' {
		t.Errorf("with a head: %v", got)
	}
}
