package topology

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// What nobody describes is known from registrations: chassis, leaf, rack, in this order.
func TestDerived(t *testing.T) {
	t.Parallel()
	at := func(id, rack, leaf, chassis string) muster.Machine {
		return muster.Machine{ID: muster.MachineID(id), Facts: muster.Facts{Rack: rack, Leaf: leaf, Chassis: chassis}}
	}
	hears := at("m7", "r9", "", "")
	hears.Facts.NICs = []muster.NIC{{Use: muster.UseMessage, Neighbour: &muster.Neighbour{System: "leaf1"}}}
	invents := at("m8", "r9", "", "")
	invents.Facts.NICs = []muster.NIC{{Use: muster.UseMessage, Neighbour: &muster.Neighbour{System: "evil"}}}
	list := []muster.Machine{
		at("m1", "r1", "leaf1", ""), at("m2", "r1", "leaf9", "enc1"), at("m3", "r1", "leaf1", "enc1"), at("m4", "r1", "", "described"),
		at("m5", "r1", "", ""), at("m6", "", "", ""), hears, invents, at("m9", "core", "", ""),
	}
	k := New(&muster.SiteTree{Stands: []muster.Stand{
		{Name: "leaf1", Kind: muster.StandLeaf, In: "core"}, {Name: "core", Kind: muster.StandSpine},
		{Name: "described", Kind: muster.StandChassis, In: "leaf1", Machines: "m1"},
	}}, list)
	for id, want := range map[string]string{
		"m1": "core leaf1 described m1", // the description counts
		"m2": "leaf9 enc1 m2",
		"m3": "core leaf1 leaf1/enc1 m3", // another chassis of that number
		"m4": "core leaf1 described m4",
		"m5": "r1 m5",
		"m6": "m6",
		"m7": "core leaf1 m7",
		"m8": "r9 m8",
		"m9": "leaf core m9", // a rack with the name of a spine
	} {
		if got := strings.Join(k.Location(muster.MachineID(id)), " "); got != want {
			t.Errorf("%s is at %s, not %s", id, got, want)
		}
	}
	if k.Switches("m1", "m4") != 1 || k.Switches("m1", "m3") != 3 || k.Switches("m1", "m7") != 2 || k.Switches("m3", "m1") != k.Switches("m1", "m3") {
		t.Errorf("%d, %d, %d switches", k.Switches("m1", "m4"), k.Switches("m1", "m3"), k.Switches("m1", "m7"))
	}
	for id, want := range map[string]string{"m1": "described", "m5": "\x00m5"} {
		if got := k.Zone(muster.MachineID(id), muster.WithinChassis); got != want {
			t.Errorf("%s is in chassis %q", id, got)
		}
	}
	if k.Zone("m1", muster.WithinLeaf) != "leaf1" || k.Zone("m5", muster.WithinLeaf) != "r1" || k.Zone("m5", muster.WithinRack) != "r1" || k.Zone("m1", muster.WithinSite) != "" {
		t.Error("zones")
	}
	again := slices.Clone(list)
	slices.Reverse(again)
	if l := New(&muster.SiteTree{}, again); l.At("m1") == 0 || Plain(nil, list) || !Plain(nil, []muster.Machine{{Facts: muster.Facts{Rack: "r1"}}}) {
		t.Error("what is known beyond racks")
	}
}

// What contradicts the description is named with who says it.
func TestContradictions(t *testing.T) {
	t.Parallel()
	lldp := muster.Machine{ID: "m3"}
	lldp.Facts.NICs = []muster.NIC{{Use: muster.UseMessage, Neighbour: &muster.Neighbour{System: "leaf2"}}, {Use: muster.UseManagement, Neighbour: &muster.Neighbour{System: "leaf2"}}}
	list := []muster.Machine{
		{ID: "m1", Facts: muster.Facts{Leaf: "leaf1"}}, {ID: "m2", Facts: muster.Facts{Leaf: "leaf2", Chassis: "elsewhere"}}, lldp,
		{ID: "m4", Facts: muster.Facts{Leaf: "core"}}, {ID: "m5", Facts: muster.Facts{Leaf: "unknown"}},
	}
	k := New(&muster.SiteTree{Stands: []muster.Stand{
		{Name: "core", Kind: muster.StandSpine}, {Name: "leaf1", Kind: muster.StandLeaf, In: "core", Machines: "m[1-5]"}, {Name: "leaf2", Kind: muster.StandLeaf, In: "core"},
	}}, list)
	got, n := k.Contradictions()
	want := []string{
		"m2 stands in leaf1 by the description, and in leaf2 by its registration",
		"m3 stands in leaf1 by the description, and in leaf2 by LLDP",
	}
	if n != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d: %q", n, got)
	}
}
