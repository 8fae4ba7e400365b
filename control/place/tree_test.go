package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
)

// twoSites are two data centres, of two leaves with four machines each; those of the
// second leaf of each are in chassis of two.
func twoSites() ([]muster.Machine, *topology.Tree) {
	t := &muster.SiteTree{}
	var machines []muster.Machine
	for _, dc := range []string{"east", "west"} {
		t.Stands = append(t.Stands, muster.Stand{Name: dc, Kind: muster.StandDataCentre})
		for l := range 2 {
			leaf := muster.Stand{Name: fmt.Sprintf("%s-leaf%d", dc, l), Kind: muster.StandLeaf, In: dc, Uplink: 2e9, Link: 1e9}
			if l == 0 {
				leaf.Machines = dc + "-0[0-3]"
			}
			t.Stands = append(t.Stands, leaf)
			if l == 1 {
				for c := range 2 {
					t.Stands = append(t.Stands, muster.Stand{Name: fmt.Sprintf("%s-enc%d", dc, c), Kind: muster.StandChassis, In: leaf.Name, Uplink: 1e9, Link: 1e9, Machines: fmt.Sprintf("%s-1[%d-%d]", dc, 2*c, 2*c+1)})
				}
			}
			for i := range 4 {
				machines = append(machines, *machine(fmt.Sprintf("%s-%d%d", dc, l, i), "", 4))
			}
		}
	}
	return machines, topology.New(t, machines)
}

func pointers(list []muster.Machine) []*muster.Machine {
	var out []*muster.Machine
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}

// stands are where the compute nodes of a plan stand, each once.
func stands(k *topology.Tree, p muster.Plan, level int) string {
	var out []string
	for _, a := range p.Assign {
		out = append(out, k.Location(a.Machine)[level])
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func TestPlanByTree(t *testing.T) {
	t.Parallel()
	machines, tree := twoSites()
	p := Planner{Tree: tree}
	for id := range 20 {
		cluster := muster.ClusterID(fmt.Sprintf("c-%d", id))
		plan := func(nodes int, how muster.Placement, within string) (muster.Plan, bool) {
			return p.Plan(cluster, muster.Spec{Nodes: nodes, Min: nodes, Head: muster.HeadShared, Placement: how, Within: within}, pointers(machines), nil)
		}
		for _, c := range []struct {
			nodes  int
			how    muster.Placement
			within string
			ok     bool
			leaves int // that it is in
			hops   int
		}{
			{4, muster.PlacePack, "", true, 1, 1}, // one leaf, and not the one whose chassis share links
			{2, muster.PlacePack, muster.WithinChassis, true, 1, 1},
			{3, muster.PlacePack, muster.WithinChassis, false, 0, 0},
			{4, muster.PlacePack, muster.WithinLeaf, true, 1, 1},
			{5, muster.PlacePack, muster.WithinLeaf, false, 0, 0},
			{8, muster.PlacePack, "", true, 2, 4},  // chassis, leaf, what joins leaves, leaf
			{9, muster.PlacePack, "", false, 0, 0}, // never in two data centres unless it says so
			{9, muster.PlacePack, muster.WithinSite, false, 0, 0},
			{9, muster.PlacePack, muster.WithinAnySite, true, 3, 5},
			{2, muster.PlaceSpread, "", true, 2, 4},
			{4, muster.PlaceSpread, muster.WithinAnySite, true, 4, 5},
			{2, muster.PlacePack, muster.WithinRoom, false, 0, 0}, // no room is known
		} {
			got, ok := plan(c.nodes, c.how, c.within)
			if ok != c.ok {
				t.Errorf("%s %d nodes within %q: %v", c.how, c.nodes, c.within, ok)
				continue
			}
			if !ok {
				continue
			}
			d := got.Distance
			if n := len(strings.Fields(stands(tree, got, 1))); n != c.leaves && c.leaves > 0 && c.nodes != 9 || d == nil || c.how == muster.PlacePack && d.Cost > d.Least*1.000001 {
				t.Errorf("%s %d nodes within %q: in %s, %+v", c.how, c.nodes, c.within, stands(tree, got, 1), d)
			} else if d.Switches > c.hops || c.how == muster.PlaceSpread && d.Cost <= d.Least {
				t.Errorf("%s %d nodes within %q: %+v", c.how, c.nodes, c.within, d)
			}
			if sites := len(strings.Fields(stands(tree, got, 0))); c.within != muster.WithinAnySite && sites > 1 {
				t.Errorf("%s %d nodes within %q are in %d data centres", c.how, c.nodes, c.within, sites)
			}
		}
		if got, _ := plan(4, muster.PlacePack, ""); !strings.HasSuffix(stands(tree, got, 1), "leaf0") {
			t.Errorf("four nodes are in %s, where two chassis share links", stands(tree, got, 1))
		}
	}
}

// A cluster grows beside the machines that it has, and within what it was asked to be in.
func TestGrowByTree(t *testing.T) {
	t.Parallel()
	machines, tree := twoSites()
	near := []muster.Machine{machines[4], machines[6]} // one of each chassis of east-leaf1
	near[0].Node, near[1].Node = "n01", "n02"
	free := pointers(slices.Concat(machines[:4], machines[5:6], machines[7:]))
	grow := func(n int, within string) (muster.Plan, bool) {
		return ScaleOut{Planner: Planner{Tree: tree}, Near: near}.Plan("c-1", muster.Spec{Nodes: n, Min: n, Mixed: true, Within: within}, free, nil)
	}
	if p, ok := grow(2, ""); !ok || stands(tree, p, 1) != "east-leaf1" || p.Distance == nil {
		t.Errorf("two more: %+v", p)
	}
	if p, ok := grow(3, ""); !ok || stands(tree, p, 0) != "east" {
		t.Errorf("three more: %+v", p)
	}
	if _, ok := grow(7, ""); ok {
		t.Error("it grew into another data centre")
	}
	if _, ok := grow(7, muster.WithinAnySite); !ok {
		t.Error("it did not grow into another data centre")
	}
	if p, ok := grow(3, muster.WithinLeaf); ok {
		t.Errorf("it grew out of its leaf: %+v", p)
	}
	if p, ok := grow(1, muster.WithinChassis); !ok || stands(tree, p, 2) != "east-enc0" {
		t.Errorf("one more within its chassis: %+v", p)
	}
	// A spare: the nearest to the lost machine.
	list := []muster.Machine{machines[12], machines[0], machines[7]}
	if got := Nearby(tree, list, []muster.Machine{machines[6]}, 3); ids(got) != "east-13 east-00 west-10" {
		t.Errorf("nearest: %s", ids(got))
	}
}

func ids(list []muster.Machine) string {
	var out []string
	for _, m := range list {
		out = append(out, string(m.ID))
	}
	return strings.Join(out, " ")
}

// What is counted is what is planned, whatever a cluster is kept within.
func TestCounterByTree(t *testing.T) {
	t.Parallel()
	machines, tree := twoSites()
	p := Planner{Tree: tree}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		spec := muster.Spec{Nodes: 1 + r.IntN(12), Min: 1, Mixed: r.IntN(2) == 0, Head: muster.HeadShared, Within: append(muster.Within(), "")[r.IntN(8)], Placement: muster.PlacePack}
		if r.IntN(2) == 0 {
			spec.Head = muster.HeadSeparate
		}
		c := NewCounter(p.Grouping(machines, spec.Mixed, spec.Within), spec)
		var compute, spare []*muster.Machine
		for j := range machines {
			switch r.IntN(3) {
			case 0:
				compute = append(compute, &machines[j])
				c.Add(int32(j), true)
			case 1:
				spare = append(spare, &machines[j])
				c.Add(int32(j), false)
			}
		}
		want := p.Capacity(spec, compute, spare)
		if got := c.Capacity(); got != want {
			t.Fatalf("seed %d: %d counted, %d of %+v", seed, got, want, spec)
		}
		plan, ok := p.Plan("c-1", spec, compute, spare)
		if ok != (want >= 1) {
			t.Fatalf("seed %d: room for %d, plan %v", seed, want, ok)
		}
		if ok && spec.Within != muster.WithinAnySite && len(strings.Fields(stands(tree, plan, 0))) > 1 {
			t.Fatalf("seed %d: head and nodes are in two data centres: %+v", seed, plan)
		}
	}
}
