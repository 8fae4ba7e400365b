package place

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

// site draws machines: some fit for nodes, others only for a head.
func site(t *rapid.T) (compute, spare []*muster.Machine) {
	n := rapid.IntRange(0, 40).Draw(t, "machines")
	for i := range n {
		m := &muster.Machine{
			ID:       muster.MachineID(fmt.Sprintf("m%03d", i)),
			Provider: rapid.SampledFrom([]string{"metal", "metal", "local"}).Draw(t, "provider"),
			Phase:    muster.MachineFree,
		}
		m.Facts.Class = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "class")
		m.Facts.Rack = rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"}).Draw(t, "rack")
		m.Facts.Cores = map[string]int{"a": 4, "b": rapid.SampledFrom([]int{4, 8}).Draw(t, "cores")}[m.Facts.Class]
		m.Facts.Service = rapid.IntRange(0, 9).Draw(t, "service") == 0
		if rapid.IntRange(0, 4).Draw(t, "spare") == 0 {
			spare = append(spare, m)
		} else {
			compute = append(compute, m)
		}
	}
	return compute, spare
}

func anySpec(t *rapid.T) muster.Spec {
	s := muster.Spec{
		Nodes:     rapid.IntRange(1, 12).Draw(t, "nodes"),
		Mixed:     rapid.Bool().Draw(t, "mixed"),
		Head:      rapid.SampledFrom([]muster.HeadMode{muster.HeadSeparate, muster.HeadShared}).Draw(t, "head"),
		Placement: rapid.SampledFrom([]muster.Placement{muster.PlacePack, muster.PlaceSpread, muster.PlaceAny}).Draw(t, "placement"),
		Within:    rapid.SampledFrom([]string{"", "rack"}).Draw(t, "within"),
	}
	s.Min = rapid.IntRange(1, s.Nodes).Draw(t, "min")
	return s
}

func values(list ...[]*muster.Machine) []muster.Machine {
	var out []muster.Machine
	for _, l := range list {
		for _, m := range l {
			out = append(out, *m)
		}
	}
	return out
}

// A plan keeps every promise, and there is one exactly when there is room.
func TestPlanKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		compute, spare := site(t)
		spec := anySpec(t)
		room := Planner{}.Capacity(spec, compute, spare)
		plan, ok := Planner{}.Plan("c-1", spec, compute, spare)
		if ok != (room >= spec.Min) {
			t.Fatalf("room for %d of at least %d, planned: %v", room, spec.Min, ok)
		}
		if !ok {
			return
		}
		if err := (Planner{}).Verify(plan, values(compute, spare)); err != nil {
			t.Fatal(err)
		}
		byID := make(map[muster.MachineID]*muster.Machine)
		fit := make(map[muster.MachineID]bool)
		for _, m := range compute {
			byID[m.ID], fit[m.ID] = m, true
		}
		for _, m := range spare {
			byID[m.ID] = m
		}
		seen := make(map[muster.MachineID]bool)
		racks := make(map[string]bool)
		classes := make(map[string]bool)
		nodes := 0
		for i, a := range plan.Assign {
			m := byID[a.Machine]
			if m == nil || seen[a.Machine] {
				t.Fatalf("machine %s is used twice or not at all", a.Machine)
			}
			seen[a.Machine] = true
			if a.Index != i || a.Head != (i == 0) {
				t.Fatalf("node %d is %+v", i, a)
			}
			if a.Role == muster.RoleCompute {
				if !fit[a.Machine] {
					t.Fatalf("%s is no node", a.Machine)
				}
				nodes++
				racks[m.Facts.Rack], classes[m.Facts.Class] = true, true
			}
		}
		if nodes != room || nodes > spec.Nodes || nodes < spec.Min {
			t.Fatalf("%d nodes, room for %d, %d to %d asked", nodes, room, spec.Min, spec.Nodes)
		}
		if want := nodes + spec.TotalNodes() - spec.Nodes; len(plan.Assign) != want {
			t.Fatalf("%d machines, want %d", len(plan.Assign), want)
		}
		if plan.Racks != len(racks) || (spec.Within == "rack" && len(racks) > 1) {
			t.Fatalf("%d racks, told %d", len(racks), plan.Racks)
		}
		if !spec.Mixed && len(classes) != 1 {
			t.Fatalf("classes %v", classes)
		}
	})
}

// The order in which machines are listed means nothing; the seed decides ties.
func TestPlanIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		compute, spare := site(t)
		spec := anySpec(t)
		a, ok := Planner{}.Plan("c-1", spec, compute, spare)
		if !ok {
			return
		}
		b, _ := Planner{}.Plan("c-1", spec, rapid.Permutation(compute).Draw(t, "compute"), rapid.Permutation(spare).Draw(t, "spare"))
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%v\n%v", a, b)
		}
	})
}

func TestSeedDecidesTies(t *testing.T) {
	t.Parallel()
	var machines []*muster.Machine
	for i := range 50 {
		machines = append(machines, &muster.Machine{ID: muster.MachineID(fmt.Sprintf("m%d", i)), Provider: "metal", Phase: muster.MachineFree})
	}
	chosen := make(map[muster.MachineID]bool)
	for i := range 60 {
		p, ok := Planner{}.Plan(muster.ClusterID(fmt.Sprintf("c-%d", i)), muster.Spec{Nodes: 1, Min: 1, Head: muster.HeadShared, Placement: muster.PlaceAny}, machines, nil)
		if !ok {
			t.Fatal("no plan")
		}
		chosen[p.Assign[0].Machine] = true
	}
	if len(chosen) < 20 {
		t.Errorf("60 requests chose among %d machines only", len(chosen))
	}
}

// Pack touches no more racks than any other way, and spread no fewer.
func TestPackAndSpread(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		compute, spare := site(t)
		spec := anySpec(t)
		racks := make(map[muster.Placement]int)
		for _, p := range []muster.Placement{muster.PlacePack, muster.PlaceSpread, muster.PlaceAny} {
			spec.Placement = p
			plan, ok := Planner{}.Plan("c-1", spec, compute, spare)
			if !ok {
				return
			}
			racks[p] = plan.Racks
		}
		if racks[muster.PlacePack] > racks[muster.PlaceAny] || racks[muster.PlaceAny] > racks[muster.PlaceSpread] {
			t.Fatalf("%v", racks)
		}
	})
}

// What a request waits for is enough for it, and only that holds others back.
func TestUsefulSuffices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		compute, spare := site(t)
		spec := anySpec(t)
		useful := Planner{}.Candidates(spec, compute, spare)
		if (Planner{}.Capacity(spec, compute, spare) >= spec.Min) != (len(useful) > 0) {
			t.Fatalf("%d useful", len(useful))
		}
		if len(useful) == 0 {
			return
		}
		in := func(list []*muster.Machine) (out []*muster.Machine) {
			for _, m := range list {
				if slices.Contains(useful, m) {
					out = append(out, m)
				}
			}
			return out
		}
		if got := (Planner{}).Capacity(spec, in(compute), in(spare)); got < spec.Min {
			t.Fatalf("%d of %d", got, spec.Min)
		}
	})
}

// More machines never mean less room.
func TestRoomIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		compute, spare := site(t)
		spec := anySpec(t)
		all := Planner{}.Capacity(spec, compute, spare)
		i := rapid.IntRange(0, len(compute)).Draw(t, "i")
		j := rapid.IntRange(0, len(spare)).Draw(t, "j")
		if fewer := (Planner{}).Capacity(spec, compute[:i], spare[:j]); fewer > all {
			t.Fatalf("%d with fewer machines, %d with all", fewer, all)
		}
	})
}

func machine(id, rack string, cores int) *muster.Machine {
	m := &muster.Machine{ID: muster.MachineID(id), Provider: "metal", Phase: muster.MachineFree}
	m.Facts.Rack, m.Facts.Cores = rack, cores
	m.Facts.Class = fmt.Sprintf("c%d", cores)
	return m
}

func TestChoices(t *testing.T) {
	t.Parallel()
	sites := map[string][]*muster.Machine{
		"racks": {
			machine("a1", "a", 4), machine("a2", "a", 4), machine("a3", "a", 4), machine("a4", "a", 4),
			machine("b1", "b", 4), machine("b2", "b", 4),
			machine("d1", "d", 4), machine("d2", "d", 4), machine("d3", "d", 4),
		},
		"classes": {machine("big1", "a", 64), machine("big2", "a", 64), machine("small1", "a", 4), machine("small2", "b", 4)},
	}
	for _, c := range []struct {
		site  string
		nodes int
		p     muster.Placement
		want  string
	}{
		{"racks", 2, muster.PlacePack, "b b"}, // the smallest rack that holds them
		{"racks", 3, muster.PlacePack, "d d d"},
		{"racks", 5, muster.PlacePack, "a a a a ?"},
		{"racks", 6, muster.PlacePack, "a a a a b b"},
		{"racks", 7, muster.PlacePack, "a a a a d d d"},
		{"racks", 3, muster.PlaceSpread, "a b d"},
		{"racks", 2, muster.PlaceSpread, "a d"},
		{"racks", 6, muster.PlaceSpread, "a a b b d d"},
		{"classes", 2, muster.PlacePack, "a b"}, // small machines rather than large ones
	} {
		spec := muster.Spec{Nodes: c.nodes, Min: c.nodes, Head: muster.HeadShared, Placement: c.p}
		plan, ok := Planner{}.Plan("c-7", spec, sites[c.site], nil)
		if !ok {
			t.Fatalf("%v: no plan", c)
		}
		var racks []string
		for _, a := range plan.Assign {
			racks = append(racks, a.Rack)
		}
		got := strings.Join(racks, " ")
		if strings.HasSuffix(c.want, "?") {
			got = got[:len(c.want)-1] + "?"
		}
		if got != c.want {
			t.Errorf("%s %d %s: racks %s, want %s", c.site, c.nodes, c.p, got, c.want)
		}
	}
}

func TestHeadPrefersService(t *testing.T) {
	t.Parallel()
	service := machine("svc", "z", 64)
	service.Facts.Service = true
	compute := []*muster.Machine{machine("a1", "a", 4), machine("a2", "a", 4), machine("a3", "a", 4)}
	spec := muster.Spec{Nodes: 2, Min: 2, Head: muster.HeadSeparate, Placement: muster.PlacePack}
	plan, ok := Planner{}.Plan("c-7", spec, compute, []*muster.Machine{machine("tiny", "a", 1), service})
	if !ok || plan.Assign[0].Machine != "svc" || plan.Assign[0].Node != "head" || plan.Assign[0].Role != muster.RoleHead {
		t.Fatalf("%v %+v", ok, plan)
	}
	plan, _ = Planner{}.Plan("c-7", spec, compute, []*muster.Machine{machine("tiny", "a", 1)})
	if plan.Assign[0].Machine != "tiny" || plan.Assign[1].Node != "n01" {
		t.Fatalf("%+v", plan)
	}
	other := machine("svc2", "z", 64)
	other.Facts.Service, other.Provider = true, "local"
	spec.Nodes = 3
	if plan, ok = (Planner{}).Plan("c-7", spec, compute, []*muster.Machine{other}); ok && len(plan.Assign) != 3 {
		t.Fatalf("a head from another provider: %+v", plan)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	compute := []*muster.Machine{machine("a1", "a", 4), machine("a2", "a", 4)}
	spec := muster.Spec{Nodes: 2, Min: 2, Head: muster.HeadShared}
	plan, ok := Planner{}.Plan("c-7", spec, compute, nil)
	if !ok {
		t.Fatal("no plan")
	}
	for name, change := range map[string]func(*muster.Machine){
		"busy":    func(m *muster.Machine) { m.Phase, m.Cluster = muster.MachineAllocated, "c-8" },
		"clean":   func(m *muster.Machine) { m.Phase = muster.MachineCleaning },
		"class":   func(m *muster.Machine) { m.Facts.Class = "other" },
		"rack":    func(m *muster.Machine) { m.Facts.Rack = "other" },
		"gone":    func(m *muster.Machine) { m.ID = "other" },
		"cluster": func(m *muster.Machine) { m.Cluster = "c-9" },
	} {
		now := values(compute)
		change(&now[1])
		if err := (Planner{}).Verify(plan, now); muster.CodeOf(err) != muster.EConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Planner{}).Verify(plan, values(compute)); err != nil {
		t.Error(err)
	}
	plan.Assign[1].Machine = plan.Assign[0].Machine
	if err := (Planner{}).Verify(plan, values(compute)); muster.CodeOf(err) != muster.EInternal {
		t.Error(err)
	}
}

func TestNodeName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		i, nodes int
		want     string
	}{{1, 4, "n01"}, {16, 16, "n16"}, {7, 100, "n007"}, {4000, 4000, "n4000"}} {
		if got := NodeName(c.i, c.nodes); got != c.want {
			t.Errorf("node %d of %d is %s, want %s", c.i, c.nodes, got, c.want)
		}
	}
}

// A plan of machines that cannot join one network contradicts itself, and one over two
// providers of one fabric does not.
func TestVerifyFabrics(t *testing.T) {
	t.Parallel()
	machines := []muster.Machine{{ID: "a", Provider: "x", Phase: muster.MachineFree}, {ID: "b", Provider: "y", Phase: muster.MachineFree}}
	plan := muster.Plan{Assign: []muster.Assignment{{Node: "n01", Machine: "a", Head: true}, {Node: "n02", Machine: "b"}}}
	if err := (Planner{}).Verify(plan, machines); muster.CodeOf(err) != muster.EInternal {
		t.Errorf("two fabrics in one cluster: %v", err)
	}
	one := Planner{Providers: muster.Providers{"x": {Fabric: "hall"}, "y": {Fabric: "hall"}}}
	if err := one.Verify(plan, machines); err != nil {
		t.Error(err)
	}
}
