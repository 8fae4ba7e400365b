package converge

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// leaves is a cluster in use whose nodes stand behind these leaves, the head first, and are so in the scheduler.
func leaves(at []string, states ...string) View {
	v := two(muster.ClusterReady, muster.NodeReady)
	v.Nodes, v.Spares = nil, map[string]Spare{}
	sched := &wire.SchedulerState{Up: true, Nodes: map[string]string{}, Reasons: map[string]string{}}
	for i, leaf := range at {
		id, name := muster.MachineID(fmt.Sprintf("m%d", i+1)), fmt.Sprintf("n%02d", i+1)
		v.Nodes = append(v.Nodes, muster.Node{Cluster: "c-1", Name: name, Index: i, Head: i == 0, Role: muster.RoleCompute, Phase: muster.NodeReady, Machine: id, Attempt: 1, PhaseSince: v.Now.Add(-time.Minute)})
		v.Machines[id] = muster.Machine{ID: id, Provider: "fake", Phase: muster.MachineActive, Cluster: "c-1", Node: name, Attempt: 1, Facts: muster.Facts{Leaf: leaf}}
		r := &Report{Cluster: "c-1", Node: name, Report: wire.Report{Attempt: 1, State: "ready"}, At: v.Now, Interval: 10 * time.Second}
		if i == 0 {
			r.Scheduler = sched
		}
		v.Observations[id] = Observation{Known: true, State: provider.StateRunning, Attempt: 1, BootIssued: 1, SeenAt: v.Now, Report: r}
		sched.Nodes[name] = states[i]
		v.Spares[name] = Spare{Machine: muster.Machine{ID: "elsewhere"}}
	}
	v.Tree = topology.New(nil, slices.Collect(maps.Values(v.Machines)))
	return v
}

// Nodes behind a switch that the head does not reach are told at once, and move after a while: only if all
// behind it are gone, it is not the head's own, and there is a machine elsewhere.
func TestUnreached(t *testing.T) {
	t.Parallel()
	described := &muster.SiteTree{Stands: []muster.Stand{
		{Name: "A", Kind: muster.StandLeaf, Machines: "m[1-2]"}, {Name: "B", Kind: muster.StandLeaf, Machines: "m[3-4]"},
	}}
	for name, c := range map[string]struct {
		at        []string
		states    []string
		after     time.Duration
		noSpare   bool
		told      bool
		moves     bool
		described bool // the site is, and otherwise than machines are registered
	}{
		"a leaf is down":             {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down*", "down*"}, 2 * time.Minute, false, true, true, false},
		"most are behind it":         {[]string{"A", "B", "B"}, []string{"idle", "down*", "down*"}, 2 * time.Minute, false, true, true, false},
		"not yet":                    {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down*", "down*"}, 10 * time.Second, false, true, false, false},
		"no machine elsewhere":       {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down*", "down*"}, time.Hour, true, true, false, false},
		"one behind it is reached":   {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down*", "idle"}, time.Hour, false, true, false, false},
		"the head's own leaf":        {[]string{"A", "A", "B", "C"}, []string{"idle", "down*", "down*", "down*"}, time.Hour, false, true, false, false},
		"not heard for a moment":     {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "idle*", "idle*"}, time.Hour, false, false, false, false},
		"an administrator's doing":   {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down", "down"}, time.Hour, false, false, false, false},
		"behind the head's switch":   {[]string{"A", "A"}, []string{"idle", "down*"}, time.Hour, false, true, false, false},
		"as it is described":         {[]string{"A", "A", "A", "A"}, []string{"idle", "idle", "down*", "down*"}, 2 * time.Minute, false, true, true, true},
		"one of what is described":   {[]string{"A", "A", "B", "C"}, []string{"idle", "idle", "idle", "down*"}, 2 * time.Minute, false, true, false, true},
		"nothing is known of leaves": {[]string{"", ""}, []string{"idle", "down*"}, time.Hour, false, true, false, false},
	} {
		v := leaves(c.at, c.states...)
		if c.noSpare {
			v.Spares = nil
		}
		if c.described {
			v.Tree = topology.New(described, slices.Collect(maps.Values(v.Machines)))
		}
		last := len(v.Nodes) - 1
		if c.states[last] == "idle" {
			last--
		}
		node, fenced := v.Nodes[last], false
		decide := func() {
			actions, _ := Decide(v)
			for _, a := range actions {
				switch a := a.(type) {
				case SetNode:
					v.Nodes[a.Node.Index] = a.Node
				case Fence:
					fenced = fenced || a.Machine == node.Machine
				}
			}
		}
		decide()
		if got := hasCondition(v.Nodes[last].Conditions, unreached); got != c.told {
			t.Errorf("%s: told: %v", name, got)
		}
		if fenced {
			t.Errorf("%s: at once", name)
		}
		v.Now = v.Now.Add(c.after)
		for id, o := range v.Observations {
			o.Report.At, o.SeenAt = v.Now, v.Now
			v.Observations[id] = o
		}
		if decide(); fenced != c.moves {
			t.Errorf("%s: moves: %v", name, fenced)
		}
		if fenced {
			continue
		}
		// The switch is back.
		v.Observations["m1"].Report.Scheduler.Nodes[v.Nodes[last].Name] = "idle"
		if decide(); hasCondition(v.Nodes[last].Conditions, unreached) {
			t.Errorf("%s: it is told still", name)
		}
	}
}

// The machine of a node that moves away from its switch bears that in mind, for a while.
func TestSwitchDown(t *testing.T) {
	t.Parallel()
	v := leaves([]string{"A", "B"}, "idle", "down*")
	decide := func() (out []Action) {
		out, _ = Decide(v)
		for _, a := range out {
			switch a := a.(type) {
			case SetNode:
				v.Nodes[a.Node.Index] = a.Node
			case SetMachine:
				v.Machines[a.Machine.ID] = a.Machine
			}
		}
		return out
	}
	decide()
	v.Now = v.Now.Add(time.Minute)
	for id, o := range v.Observations {
		o.Report.At, o.SeenAt = v.Now, v.Now
		v.Observations[id] = o
	}
	decide() // it is lost
	o := v.Observations["m2"]
	o.Fenced, o.Fence = true, &muster.FenceRecord{Machine: "m2", Proven: true}
	v.Observations["m2"] = o
	decide()
	m := v.Machines["m2"]
	if m.Cluster != "" || !hasCondition(m.Conditions, muster.ConditionSwitchDown) || !m.IsDoubtful() {
		t.Fatalf("%+v of %+v", m, v.Nodes)
	}
	m.Phase, m.Conditions = muster.MachineFree, []muster.Condition{*conditionOf(m.Conditions, muster.ConditionSwitchDown)}
	actions, again := DecideMachine(MachineView{Now: v.Now, Machine: m})
	if len(actions) != 0 || again <= 0 {
		t.Errorf("%s, again after %s", brief(actions), again)
	}
	actions, _ = DecideMachine(MachineView{Now: v.Now.Add(again), Machine: m})
	if len(actions) != 1 || hasCondition(actions[0].(SetMachine).Machine.Conditions, muster.ConditionSwitchDown) {
		t.Errorf("%s", brief(actions))
	}
}

// What the scheduler said of a node before it was ready was about the machine before.
func TestUnreachedJudgesByNewsOnly(t *testing.T) {
	t.Parallel()
	for _, ready := range []time.Duration{-time.Second, 0} {
		v := leaves([]string{"A", "B"}, "idle", "down*")
		v.Nodes[1].PhaseSince = v.Now.Add(ready)
		told := false
		actions, _ := Decide(v)
		for _, a := range actions {
			if set, ok := a.(SetNode); ok && hasCondition(set.Node.Conditions, unreached) {
				told = true
			}
		}
		if told != (ready < 0) {
			t.Errorf("ready for %v: told: %v", -ready, told)
		}
	}
}
