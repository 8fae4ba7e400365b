package converge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
		"all, the head's leaf too":   {[]string{"A", "A", "B", "B"}, []string{"idle", "down*", "down*", "down*"}, time.Hour, false, true, false, false},
		"some are silent, not lost":  {[]string{"A", "A", "B", "B"}, []string{"idle", "idle*", "down*", "down*"}, 2 * time.Minute, false, true, true, false},
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
		fenced := false
		decide := func() {
			actions, _ := Decide(v)
			for _, a := range actions {
				switch a := a.(type) {
				case SetNode:
					v.Nodes[a.Node.Index] = a.Node
				case Fence:
					fenced = true
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

// shown is a view to decide on again and again: what a decision records comes to be, and agents go on reporting.
type shown struct {
	View
	marks  []MarkSwitch
	clears []ClearSwitch
	fences []muster.MachineID
}

func (v *shown) decide(after time.Duration) {
	v.Now = v.Now.Add(after)
	for id, o := range v.Observations {
		if o.Report != nil {
			o.Report.At, o.SeenAt = v.Now, v.Now
			v.Observations[id] = o
		}
	}
	actions, _ := Decide(v.View)
	for _, a := range actions {
		switch a := a.(type) {
		case SetNode:
			v.Nodes[a.Node.Index] = a.Node
		case SetMachine:
			v.Machines[a.Machine.ID] = a.Machine
		case MarkSwitch:
			v.marks = append(v.marks, a)
		case ClearSwitch:
			v.clears = append(v.clears, a)
		case Fence:
			v.fences = append(v.fences, a.Machine)
		}
	}
}

// A node whose machine is cut off goes to its spare, and is ready there.
func (v *shown) moved(i int, to string) {
	n := &v.Nodes[i]
	id := muster.MachineID("new-" + n.Name)
	m := v.Machines[n.Machine]
	m.ID, m.Facts.Leaf = id, to
	v.Machines[id] = m
	r := &Report{Cluster: "c-1", Node: n.Name, Report: wire.Report{Attempt: 1, State: "ready"}, At: v.Now, Interval: 10 * time.Second}
	v.Observations[id] = Observation{Known: true, State: provider.StateRunning, Attempt: 1, BootIssued: 1, SeenAt: v.Now, Report: r}
	n.PreviousMachine, n.Machine, n.Phase, n.PhaseSince = n.Machine, id, muster.NodeReady, v.Now
	v.Tree = topology.New(nil, slices.Collect(maps.Values(v.Machines)))
}

// A switch is blamed when the head reaches somebody else; where it reaches nobody, when one that moved is reached.
func TestSwitchDown(t *testing.T) {
	t.Parallel()
	proven := &shown{View: leaves([]string{"A", "A", "B", "B"}, "idle", "idle", "down*", "down*")}
	proven.decide(0)
	proven.decide(time.Minute)
	if len(proven.marks) == 0 || proven.marks[0].Stand != "B" || len(proven.fences) != 2 {
		t.Fatalf("%+v, fenced %v", proven.marks, proven.fences)
	}
	for name, c := range map[string]struct {
		to, state string
		mark      string
	}{
		"reached elsewhere": {"A", "idle", "B"},
		"nor there":         {"A", "down*", ""},
		"behind a third":    {"C", "down*", ""},
	} {
		v := &shown{View: leaves([]string{"A", "B", "B"}, "idle", "down*", "down*")}
		v.decide(0)
		for range 5 {
			v.decide(time.Minute)
		}
		if len(v.marks) != 0 || len(v.fences) == 0 || slices.ContainsFunc(v.fences, func(id muster.MachineID) bool { return id != v.fences[0] }) {
			t.Errorf("%s: %+v, fenced %v: one shows whether that helps", name, v.marks, v.fences)
			continue
		}
		i := slices.IndexFunc(v.Nodes, func(n muster.Node) bool { return n.Phase != muster.NodeReady })
		v.Observations["m1"].Report.Scheduler.Nodes[v.Nodes[i].Name] = c.state
		v.moved(i, c.to)
		v.fences = nil
		v.decide(time.Second)
		v.decide(time.Hour)
		if c.mark == "" {
			if len(v.marks) != 0 || len(v.fences) != 0 {
				t.Errorf("%s: %+v, fenced %v", name, v.marks, v.fences)
			}
		} else if len(v.marks) == 0 || v.marks[0].Stand != c.mark || len(v.fences) == 0 {
			t.Errorf("%s: %+v, fenced %v", name, v.marks, v.fences)
		}
	}
}

// A scheduler that takes up that a node moved says nothing meanwhile: the switch that the node left is blamed all the same.
func TestSwitchDownWhileTheSchedulerIsAway(t *testing.T) {
	t.Parallel()
	before := &wire.SchedulerState{Up: true, Nodes: map[string]string{"n01": "idle", "n02": "down*"}}
	for name, meanwhile := range map[string]*wire.SchedulerState{"down": {}, "silent": nil, "of the machine before": before} {
		v := &shown{View: leaves([]string{"A", "B"}, "idle", "down*")}
		v.decide(0)
		for range 5 {
			v.decide(time.Minute)
		}
		if len(v.marks) != 0 || len(v.fences) == 0 {
			t.Errorf("%s: %+v, fenced %v", name, v.marks, v.fences)
			continue
		}
		r := v.Observations["m1"].Report
		said := r.Scheduler
		said.Nodes[v.Nodes[1].Name] = "idle"
		v.moved(1, "A")
		r.Scheduler = meanwhile
		v.decide(time.Second)
		r.Scheduler = said
		v.decide(time.Second)
		if len(v.marks) != 1 || v.marks[0].Stand != "B" {
			t.Errorf("%s: %+v", name, v.marks)
		}
	}
}

// While the head's own switch is down everybody stays, whatever others did before; what is said has no time in it.
func TestHeadsSwitchDown(t *testing.T) {
	t.Parallel()
	v := &shown{View: leaves([]string{"A", "A", "B", "B"}, "idle", "down*", "down*", "down*")}
	v.decide(0)
	v.Nodes[2].Phase, v.Nodes[2].PreviousMachine = muster.NodeFenced, v.Nodes[2].Machine // by an earlier mistake
	v.decide(time.Hour)
	if len(v.marks) != 0 || slices.Contains(v.fences, "m2") || slices.Contains(v.fences, "m4") {
		t.Errorf("%+v, fenced %v", v.marks, v.fences)
	}
	for _, i := range []int{1, 3} {
		c := conditionOf(v.Nodes[i].Conditions, unreached)
		if c == nil || !strings.Contains(c.Hint, "check the switch A") || !c.Deadline.IsZero() || strings.Contains(c.WithWaiting().Next, "moves") {
			t.Errorf("%+v", c)
		}
	}
}

// A mark ends by itself, and before that when the head reaches a machine behind the switch again.
func TestSwitchIsBack(t *testing.T) {
	t.Parallel()
	v := &shown{View: leaves([]string{"A", "A", "B", "B"}, "idle", "idle", "idle", "down*")}
	m := v.Machines["m3"]
	m.Conditions = []muster.Condition{{Code: muster.ConditionSwitchDown, Stand: "B", Since: v.Now}}
	v.Machines["m3"] = m
	if v.decide(time.Minute); len(v.clears) != 0 {
		t.Errorf("%+v: the scheduler may not have seen it yet", v.clears)
	}
	if v.decide(reachedAfter); len(v.clears) != 1 || v.clears[0].Stand != "B" {
		t.Errorf("%+v", v.clears)
	}
	if v.decide(time.Hour); len(v.Machines["m3"].Conditions) != 0 {
		t.Errorf("%+v", v.Machines["m3"].Conditions)
	}
	m.Phase, m.Cluster, m.Node = muster.MachineFree, "", ""
	actions, again := DecideMachine(MachineView{Now: m.Conditions[0].Since, Machine: m})
	if len(actions) != 0 || again <= 0 || !m.IsDoubtful() {
		t.Errorf("%s, again after %s", brief(actions), again)
	}
	actions, _ = DecideMachine(MachineView{Now: m.Conditions[0].Since.Add(again), Machine: m})
	if len(actions) != 1 || hasCondition(actions[0].(SetMachine).Machine.Conditions, muster.ConditionSwitchDown) {
		t.Errorf("%s", brief(actions))
	}
}

// A test that somebody asked for clears the mark of the whole switch; one that comes by itself does not.
func TestMachineTestClearsSwitch(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{true, false} {
		now := time.Unix(1e9, 0)
		m := muster.Machine{ID: "m3", Provider: "fake", Phase: muster.MachineTesting, Conditions: []muster.Condition{{Code: muster.ConditionSwitchDown, Stand: "B", Since: now}}}
		if asked {
			m.Intent = muster.IntentTest
		}
		actions, _ := DecideMachine(MachineView{Now: now, Machine: m, Observation: Observation{Known: true, State: provider.StateOff, Tested: &muster.TestRecord{Machine: "m3", At: now, Passed: true}}})
		clears := slices.ContainsFunc(actions, func(a Action) bool { c, ok := a.(ClearSwitch); return ok && c.Stand == "B" })
		if clears != asked {
			t.Errorf("asked %v: %s", asked, brief(actions))
		}
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
