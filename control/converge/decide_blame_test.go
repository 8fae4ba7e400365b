package converge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

// judged has a machine with these faults pass a test, among others of the site.
func judged(m muster.Machine, passed bool, others ...muster.Machine) muster.Machine {
	m.Phase = muster.MachineTesting
	v := MachineView{Now: at(100), Machine: m, Observation: Observation{Tested: &muster.TestRecord{
		Machine: m.ID, At: at(99), Passed: passed, Steps: []muster.CleanStep{{What: "memory", Check: "a bit fell", OK: passed}},
	}}}
	v.Around = around(m, append(others, m), v.Now, DefaultLimits().FaultWindow)
	actions, _ := DecideMachine(v)
	for _, a := range actions {
		if s, ok := a.(SetMachine); ok {
			m = s.Machine
		}
	}
	return m
}

func under(cluster, project, owner string, sec int) muster.Fault {
	return muster.FaultUnder(muster.Cluster{ID: muster.ClusterID(cluster), Project: project, Owner: owner}, muster.FaultLost, at(sec))
}

func fleet(n int) []muster.Machine {
	var out []muster.Machine
	for i := range n {
		out = append(out, muster.Machine{ID: muster.MachineID(fmt.Sprintf("o%02d", i)), Phase: muster.MachineFree})
	}
	return out
}

func TestWhoIsToBlame(t *testing.T) {
	t.Parallel()
	strangers := []muster.Fault{under("c-1", "p", "a", 1), under("c-2", "q", "b", 2), under("c-3", "r", "c", 3)}
	set := func(o []muster.Machine, i int, f func(*muster.Machine)) []muster.Machine { f(&o[i]); return o }
	aside := func(m *muster.Machine) {
		m.Phase = muster.MachineQuarantined
		m.Conditions = []muster.Condition{{Code: quarantined}, {Code: underTenants}}
	}
	own := func(k muster.FaultKind, sec int) muster.Fault { return muster.Fault{At: at(sec), Kind: k} }
	old := under("c-3", "r", "c", 3)
	old.At = at(0).Add(-8 * 24 * time.Hour)
	for _, c := range []struct {
		name   string
		m      muster.Machine
		others []muster.Machine
		passed bool
		out    bool
	}{
		{"one tenant, sixteen times", muster.Machine{Faults: slices.Repeat([]muster.Fault{under("c-1", "p", "a", 1)}, 16)}, nil, true, false},
		{"one tenant, three clusters", muster.Machine{Faults: []muster.Fault{under("c-1", "p", "a", 1), under("c-2", "p", "a", 2), under("c-3", "p", "b", 3)}}, nil, true, false},
		{"three strangers", muster.Machine{Faults: strangers}, nil, true, true},
		{"two strangers", muster.Machine{Faults: strangers[:2]}, nil, true, false},
		{"one long ago", muster.Machine{Faults: append([]muster.Fault{old}, strangers[:2]...)}, nil, true, false},
		{"one of the clusters failed elsewhere, too", muster.Machine{Faults: strangers}, set(fleet(5), 2, func(m *muster.Machine) { m.Faults = []muster.Fault{under("c-2", "q", "b", 50)} }), true, false},
		{"the share of the site is used up", muster.Machine{Faults: strangers}, set(fleet(30), 2, aside), true, false},
		{"a larger site has more", muster.Machine{Faults: strangers}, set(fleet(50), 2, aside), true, true},
		{"by itself", muster.Machine{Faults: []muster.Fault{own(muster.FaultOff, 1), own(muster.FaultOff, 2), own(muster.FaultClean, 3)}}, nil, true, true},
		{"cleaned since", muster.Machine{
			Faults:    []muster.Fault{own(muster.FaultClean, 1), own(muster.FaultClean, 2), own(muster.FaultClean, 3)},
			LastClean: &muster.CleanRecord{At: at(50), Verified: true},
		}, nil, true, false},
		{"it fails its test twice", muster.Machine{TestsFailed: 1}, nil, false, true},
		{"as many others do", muster.Machine{TestsFailed: 1}, func() []muster.Machine {
			o := fleet(8)
			for i := range 4 {
				o[i].Conditions = []muster.Condition{{Code: testFailed, Since: at(70 + i), Text: "it failed its test: memory: a bit fell"}}
			}
			return o
		}(), false, false},
		{"others fail otherwise", muster.Machine{TestsFailed: 1}, func() []muster.Machine {
			o := fleet(8)
			for i := range 4 {
				o[i].Conditions = []muster.Condition{{Code: testFailed, Since: at(70 + i), Text: fmt.Sprintf("it failed its test: part %c is broken", 'a'+i)}}
			}
			return o
		}(), false, true},
	} {
		c.m.ID = "m1"
		m := judged(c.m, c.passed, c.others...)
		if got := m.Phase == muster.MachineQuarantined; got != c.out {
			t.Errorf("%s: %s %+v", c.name, m.Phase, m.Conditions)
		}
		if c.passed && !c.out && !m.IsDoubtful() {
			t.Errorf("%s: it is not doubtful: %+v", c.name, m.Conditions)
		}
		if !c.passed && !c.out && !hasCondition(m.Conditions, commonCause) {
			t.Errorf("%s: the cause in common is not told: %+v", c.name, m.Conditions)
		}
	}
}

// Whatever tenants bring about on machines that pass their tests: one tenant takes out
// none of them, and several at most the share of the site that they may.
func TestTenantsTakeNoMachinesOutProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tenants := rapid.IntRange(1, 8).Draw(t, "tenants")
		site := fleet(rapid.IntRange(1, 60).Draw(t, "machines"))
		for i := range rapid.IntRange(1, 120).Draw(t, "acts") {
			m := &site[rapid.IntRange(0, len(site)-1).Draw(t, "machine")]
			if m.Phase != muster.MachineFree {
				continue
			}
			who := rapid.IntRange(1, tenants).Draw(t, "tenant")
			c := muster.Cluster{
				ID:      muster.ClusterID(fmt.Sprintf("c-%d-%d", who, rapid.IntRange(1, 5).Draw(t, "cluster"))),
				Project: fmt.Sprint("p", who), Owner: fmt.Sprint("u", who),
			}
			if m.FailedUnder(c.ID) {
				continue // it does not get it again
			}
			kind := rapid.SampledFrom([]muster.FaultKind{muster.FaultLost, muster.FaultBoot, muster.FaultOff}).Draw(t, "kind")
			*m = m.WithFault(muster.FaultUnder(c, kind, at(i%90)))
			others := slices.DeleteFunc(slices.Clone(site), func(o muster.Machine) bool { return o.ID == m.ID })
			if *m = judged(*m, true, others...); m.Phase == muster.MachineCleaning {
				m.Phase = muster.MachineFree
			}
		}
		out := 0
		for _, m := range site {
			if m.Phase == muster.MachineQuarantined {
				out++
			}
		}
		if tenants < 3 && out > 0 || out > max(1, len(site)/DefaultLimits().AsideShare) {
			t.Fatalf("%d of %d machines are out of use by the acts of %d tenants", out, len(site), tenants)
		}
	})
}

// A configuration that fails is tried on another machine once, blames neither, and is told
// as what it is.
func TestAConfigurationThatFails(t *testing.T) {
	t.Parallel()
	fails := func(v View, machines ...muster.MachineID) View {
		v.Nodes[1].Failures, v.Nodes[1].Unconfigured = 2, machines
		says("m2", "failed", 1, nil)(&v)
		return v
	}
	another := func(v *View) {
		v.Spares = map[string]Spare{"n02": {Machine: muster.Machine{ID: "m3", Provider: "fake", Phase: muster.MachineFree}}}
	}
	actions, _ := Decide(fails(two(muster.ClusterReady, muster.NodeConfiguring, another), "m2"))
	if !strings.Contains(brief(actions), "fence:m2") {
		t.Fatalf("no other machine is tried: %s", brief(actions))
	}
	// On the second machine it fails alike: no third one.
	actions, _ = Decide(fails(two(muster.ClusterReady, muster.NodeConfiguring, another), "m1", "m2"))
	if strings.Contains(brief(actions), "fence:m2") {
		t.Errorf("a third machine is tried: %s", brief(actions))
	}
	// The machine that is parted from its node is clean of it.
	v := two(muster.ClusterReady, muster.NodeFencing, knows("m2", func(s *Observation) {
		s.Fenced, s.Fence = true, &muster.FenceRecord{Machine: "m2", Proven: true, At: at(99)}
	}), node(0, func(n *muster.Node) {
		n.Phase, n.Stages = muster.NodeReady, []muster.Stage{{Name: "ready"}}
	}))
	v.Nodes[1].Failures, v.Nodes[1].Unconfigured = 3, []muster.MachineID{"m2"}
	actions, _ = Decide(v)
	if !strings.Contains(brief(actions), "m2=cleaning") {
		t.Errorf("its machine is blamed: %s", brief(actions))
	}
	v.Nodes[1].Unconfigured = nil // it never joined, where another machine booted the same
	actions, _ = Decide(v)
	if !strings.Contains(brief(actions), "m2=suspect") {
		t.Errorf("a machine that does not boot is not tested: %s", brief(actions))
	}
	// A cluster that never was says so, and gives no advice that is of no use.
	v = two(muster.ClusterBuilding, muster.NodeConfiguring)
	v.Cluster.Spec.Nodes, v.Cluster.Spec.Min, v.Nodes = 1, 1, v.Nodes[:1]
	v.Nodes[0].Failures, v.Nodes[0].Unconfigured = 2, []muster.MachineID{"m9"}
	says("m1", "failed", 1, nil)(&v)
	actions, _ = Decide(v)
	for _, a := range actions {
		if c, ok := a.(SetCluster); ok && c.Cluster.Reason != nil {
			if r := c.Cluster.Reason; r.Reason != muster.ReasonBootFailed || !strings.Contains(r.Message, " 2 ") || strings.Contains(r.Hint, "min:") {
				t.Errorf("%s / %s", r.Message, r.Hint)
			}
			return
		}
	}
	t.Errorf("it does not fail: %s", brief(actions))
}

// What is measured once its people are in may be their doing: it puts no machine aside.
func TestSlownessUnderATenant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		c    muster.Cluster
		want bool
	}{
		{muster.Cluster{Phase: muster.ClusterValidating}, true},
		{muster.Cluster{Phase: muster.ClusterReady, Benchmark: true}, true},
		{muster.Cluster{Phase: muster.ClusterReady}, false},
		{muster.Cluster{Phase: muster.ClusterValidating, Spec: muster.Spec{Packages: []string{"x"}}}, false},
	} {
		if untouched(c.c) != c.want {
			t.Errorf("%+v", c.c)
		}
	}
}

func TestDoubtIsTestedLonger(t *testing.T) {
	t.Parallel()
	d := decider{View: View{Now: at(100), Limits: DefaultLimits()}}
	for n, want := range []int{1, 1, 2, 4, 8, 8} {
		m := muster.Machine{Faults: slices.Repeat([]muster.Fault{under("c-1", "p", "a", 1)}, n)}
		if got := d.effort(m); got != want {
			t.Errorf("after %d faults: %d, want %d", n, got, want)
		}
	}
	m := muster.Machine{Phase: muster.MachineActive, PhaseSince: at(100).Add(-time.Hour), Conditions: []muster.Condition{{Code: muster.ConditionDoubtful}}}
	if m = d.trusted(m); !m.IsDoubtful() {
		t.Error("an hour is no good service")
	}
	m.PhaseSince = at(100).Add(-25 * time.Hour)
	if m = d.trusted(m); m.IsDoubtful() {
		t.Error("it served for a day")
	}
}
