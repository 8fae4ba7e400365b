package converge

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
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
		v.Nodes = append(v.Nodes, muster.Node{Cluster: "c-1", Name: name, Index: i, Head: i == 0, Role: muster.RoleCompute, Phase: muster.NodeReady, Machine: id, Attempt: 1, PhaseSince: v.Now})
		v.Machines[id] = muster.Machine{ID: id, Provider: "fake", Phase: muster.MachineActive, Cluster: "c-1", Node: name, Attempt: 1, Facts: muster.Facts{Leaf: leaf}}
		r := &Report{Cluster: "c-1", Node: name, Report: wire.Report{Attempt: 1, State: "ready"}, At: v.Now, Interval: 10 * time.Second}
		if i == 0 {
			r.Scheduler = sched
		}
		v.Observations[id] = Observation{Known: true, State: provider.StateRunning, Attempt: 1, BootIssued: 1, SeenAt: v.Now, Report: r}
		sched.Nodes[name] = states[i]
		v.Spares[name] = Spare{Machine: muster.Machine{ID: "elsewhere"}}
	}
	return v
}

// Nodes behind a switch that the head does not reach are told at once, and move after a while: only if all
// behind it are gone, it is not the head's own, and there is a machine elsewhere.
func TestUnreached(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at      []string
		states  []string
		after   time.Duration
		noSpare bool
		told    bool
		moves   bool
	}{
		"a leaf is down":             {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down*", "down*"}, 2 * time.Minute, false, true, true},
		"most are behind it":         {[]string{"A", "B", "B"}, []string{"idle", "down*", "down*"}, 2 * time.Minute, false, true, true},
		"not yet":                    {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down*", "down*"}, 10 * time.Second, false, true, false},
		"no machine elsewhere":       {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down*", "down*"}, time.Hour, true, true, false},
		"one behind it is reached":   {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down*", "idle"}, time.Hour, false, true, false},
		"the head's own leaf":        {[]string{"A", "A", "B", "C"}, []string{"idle", "down*", "down*", "down*"}, time.Hour, false, true, false},
		"not heard for a moment":     {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "idle*", "idle*"}, time.Hour, false, false, false},
		"an administrator's doing":   {[]string{"A", "A", "B", "B"}, []string{"idle", "idle", "down", "down"}, time.Hour, false, false, false},
		"behind the head's switch":   {[]string{"A", "A"}, []string{"idle", "down*"}, time.Hour, false, true, false},
		"nothing is known of leaves": {[]string{"", ""}, []string{"idle", "down*"}, time.Hour, false, true, false},
	} {
		v := leaves(c.at, c.states...)
		if c.noSpare {
			v.Spares = nil
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
