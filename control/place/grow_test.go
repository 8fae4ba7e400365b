package place_test

import (
	"fmt"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
	"pgregory.net/rapid"
)

func TestSpots(t *testing.T) {
	t.Parallel()
	nodes := []muster.Node{
		{Name: "head", Index: 0, Role: muster.RoleHead, Head: true},
		{Name: "n01", Index: 1, Role: muster.RoleCompute},
		{Name: "n03", Index: 3, Role: muster.RoleCompute, Phase: muster.NodeGone},
		{Name: "n02", Index: 2, Role: muster.RoleCompute, Phase: muster.NodeGone},
		{Name: "login1", Index: 4, Role: muster.RoleLogin},
	}
	for _, c := range []struct {
		role muster.Role
		k    int
		want string
	}{
		{muster.RoleCompute, 0, ""},
		{muster.RoleCompute, 1, "n02/2 "},
		{muster.RoleCompute, 4, "n02/2 n03/3 n04/5 n05/6 "},
		{muster.RoleLogin, 2, "login2/5 login3/6 "},
	} {
		got := ""
		for _, n := range place.Spots(nodes, c.role, c.k) {
			got += fmt.Sprintf("%s/%d ", n.Name, n.Index)
		}
		if got != c.want {
			t.Errorf("%d %s: %s, not %s", c.k, c.role, got, c.want)
		}
	}
	wide := place.Spots([]muster.Node{{Name: "n99", Index: 98, Role: muster.RoleCompute}}, muster.RoleCompute, 99)
	if first, last := wide[0].Name, wide[98].Name; first != "n01" || last != "n100" {
		t.Errorf("%s to %s", first, last)
	}
}

// Head, login and compute nodes each have a machine of their own, and what
// Room tells is what Plan does.
func TestLoginNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var compute, spare []*muster.Machine
		for i := range rapid.IntRange(0, 9).Draw(t, "compute") {
			compute = append(compute, &muster.Machine{ID: muster.MachineID(fmt.Sprintf("m%d", i)), Provider: "fake", Facts: muster.Facts{Class: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "class"), Cores: 4}})
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "spare") {
			spare = append(spare, &muster.Machine{ID: muster.MachineID(fmt.Sprintf("s%d", i)), Provider: "fake", Facts: muster.Facts{Class: "service", Service: true, Cores: 1}})
		}
		spec := muster.Spec{
			Nodes: rapid.IntRange(1, 6).Draw(t, "nodes"), Min: 1, Logins: rapid.IntRange(0, 3).Draw(t, "logins"),
			Head: rapid.SampledFrom([]muster.HeadMode{muster.HeadSeparate, muster.HeadShared}).Draw(t, "head"), Placement: muster.PlacePack,
		}
		room := place.Planner{}.Capacity(spec, compute, spare)
		plan, ok := place.Planner{}.Plan("c-1", spec, compute, spare)
		if ok != (room >= 1) {
			t.Fatalf("room for %d, plan %v", room, ok)
		}
		if !ok {
			return
		}
		machine, name, count := map[muster.MachineID]bool{}, map[string]bool{}, map[muster.Role]int{}
		for i, a := range plan.Assign {
			if machine[a.Machine] || name[a.Node] || a.Index != i {
				t.Fatalf("%+v in %+v", a, plan)
			}
			machine[a.Machine], name[a.Node] = true, true
			count[a.Role]++
		}
		if count[muster.RoleCompute] != room || count[muster.RoleLogin] != spec.Logins || (count[muster.RoleHead] == 1) != (spec.Head == muster.HeadSeparate) {
			t.Fatalf("%v for %+v with room for %d", count, spec, room)
		}
	})
}
