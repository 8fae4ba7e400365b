package topology

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// What is to blame is the smallest switch that has all who are lost, and nobody who is reached.
func TestApart(t *testing.T) {
	t.Parallel()
	k := New(&muster.SiteTree{Stands: []muster.Stand{
		{Name: "core", Kind: muster.StandSpine},
		{Name: "a", Kind: muster.StandLeaf, In: "core", Machines: "a[1-3]"},
		{Name: "b", Kind: muster.StandLeaf, In: "core"},
		{Name: "b1", Kind: muster.StandChassis, In: "b", Machines: "b1[1-3]"},
		{Name: "b2", Kind: muster.StandChassis, In: "b", Machines: "b2[1-3]"},
		{Name: "far", Kind: muster.StandSpine, In: "core"},
		{Name: "c", Kind: muster.StandLeaf, In: "far", Machines: "c[1-3]"},
		{Name: "d", Kind: muster.StandLeaf, In: "far", Machines: "d[1-3]"},
	}}, machinesNamed("a1", "a2", "a3", "b11", "b12", "b21", "b22", "c1", "c2", "d1", "x"))
	ids := func(names ...string) (out []muster.MachineID) {
		for _, n := range names {
			out = append(out, muster.MachineID(n))
		}
		return out
	}
	for name, c := range map[string]struct {
		lost, reached []muster.MachineID
		of            muster.MachineID
		want          string
	}{
		"a leaf":                         {ids("c1", "c2"), ids("a1"), "c1", "c"},
		"one of a leaf":                  {ids("c1"), ids("a1"), "c1", "c"},
		"two leaves of a spine":          {ids("c1", "d1"), ids("a1"), "c1", "far"},
		"one chassis of a leaf":          {ids("b11", "b12"), ids("b21", "a1"), "b11", "b1"},
		"one chassis, alone in its leaf": {ids("b11", "b12"), ids("a1"), "b11", "b1"},
		"both chassis of a leaf":         {ids("b11", "b21"), ids("a1"), "b21", "b"},
		"several switches":               {ids("b11", "c1"), ids("a1"), "c1", "c"},
		"beside one that is reached":     {ids("c1"), ids("c2", "a1"), "c1", ""},
		"nobody knows where":             {ids("x"), ids("a1"), "x", ""},
	} {
		v := k.Apart(c.reached[0], c.lost, c.reached[1:]).Stand(c.of)
		if got := k.Stands[v].Name; got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
		if v > 0 && !k.Inside(c.of, v) || v > 0 && k.Inside("a1", v) {
			t.Errorf("%s: inside %s", name, c.want)
		}
	}
	if k.Inside("a1", 0) {
		t.Error("inside nothing")
	}
}

// Where the head reaches nobody, its own switch is to blame if others behind that are lost; else nothing is proven.
func TestApartOfTheHead(t *testing.T) {
	t.Parallel()
	k := New(&muster.SiteTree{Stands: []muster.Stand{
		{Name: "core", Kind: muster.StandSpine},
		{Name: "a", Kind: muster.StandLeaf, In: "core", Machines: "a[1-3]"},
		{Name: "b", Kind: muster.StandLeaf, In: "core"},
		{Name: "b1", Kind: muster.StandChassis, In: "b", Machines: "b1[1-3]"},
		{Name: "b2", Kind: muster.StandChassis, In: "b", Machines: "b2[1-3]"},
		{Name: "c", Kind: muster.StandLeaf, In: "core", Machines: "c[1-3]"},
	}}, machinesNamed("a1", "a2", "b11", "b12", "b21", "b22", "c1", "c2", "x"))
	for name, c := range map[string]struct {
		head          muster.MachineID
		lost, reached []muster.MachineID
		want          string
		proven        bool
		several       bool
	}{
		"its leaf":                  {"a1", []muster.MachineID{"a2", "c1", "c2"}, nil, "a", false, false},
		"its leaf alone":            {"a1", []muster.MachineID{"a2"}, nil, "a", false, false},
		"its chassis":               {"b11", []muster.MachineID{"b12", "c1"}, nil, "b1", false, false},
		"the leaf of its chassis":   {"b11", []muster.MachineID{"b21", "c1"}, nil, "b", false, true},
		"alone, all behind another": {"a1", []muster.MachineID{"c1", "c2"}, nil, "", false, false},
		"alone, behind several":     {"a1", []muster.MachineID{"b11", "c1"}, nil, "", false, true},
		"a neighbour is reached":    {"a1", []muster.MachineID{"c1", "c2"}, []muster.MachineID{"a2"}, "", true, false},
		"somebody is, elsewhere":    {"a1", []muster.MachineID{"a2"}, []muster.MachineID{"c1"}, "", true, false},
		"nobody knows where":        {"x", []muster.MachineID{"c1"}, nil, "", false, false},
	} {
		a := k.Apart(c.head, c.lost, c.reached)
		if got := k.Stands[a.Head()].Name; got != c.want || a.Proven != c.proven || a.Several != c.several {
			t.Errorf("%s: %q, proven %v, several %v", name, got, a.Proven, a.Several)
		}
	}
}

func machinesNamed(names ...string) (out []muster.Machine) {
	for _, n := range names {
		out = append(out, muster.Machine{ID: muster.MachineID(n)})
	}
	return out
}
