package converge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// What a node in use says of itself is told of it and of its cluster, by what it is, and
// ends when it is well again. Nothing is repaired for it.
func TestComplaintsAreTold(t *testing.T) {
	t.Parallel()
	bad := func(checks ...wire.Check) func(*View) {
		return knows("m2", func(s *Observation) { s.Report.Checks = checks })
	}
	view := func(checks ...wire.Check) View {
		return two(muster.ClusterReady, muster.NodeReady, says("m1", "ready", 1, nil), says("m2", "ready", 1, nil), bad(checks...))
	}
	v := view(wire.Check{Name: "configuration", Text: "user video: the name is taken"}, wire.Check{Name: "sshd", Text: "does not answer"}, wire.Check{Name: "munge", OK: true})
	actions, _ := Decide(v)
	var c muster.Cluster
	var n muster.Node
	for _, a := range actions {
		switch a := a.(type) {
		case SetCluster:
			c = a.Cluster
		case SetNode:
			n = a.Node
		default:
			t.Errorf("%+v", a)
		}
	}
	for code, want := range map[muster.ConditionCode]string{notApplied: "user video: the name is taken", unhealthy: "sshd: does not answer"} {
		if got := conditionText(n.Conditions, code); got != want {
			t.Errorf("n02 %s: %q", code, got)
		}
		if got := conditionText(c.Conditions, code); !strings.Contains(got, "n02: "+want) {
			t.Errorf("cluster %s: %q", code, got)
		}
	}
	// Well again.
	v = view(wire.Check{Name: "configuration", OK: true}, wire.Check{Name: "sshd", OK: true})
	v.Cluster.Conditions, v.Nodes[1].Conditions = c.Conditions, n.Conditions
	actions, _ = Decide(v)
	for _, a := range actions {
		switch a := a.(type) {
		case SetCluster:
			c = a.Cluster
		case SetNode:
			n = a.Node
		}
	}
	if len(n.Conditions) != 0 || hasCondition(c.Conditions, notApplied) || hasCondition(c.Conditions, unhealthy) {
		t.Errorf("still %+v, %+v", n.Conditions, c.Conditions)
	}
}

// A node on which something that jobs need does not work gets none, is started anew on its
// machine after a while, and moves if that does not help: once each, not for a disk that
// its people have filled, and not for what most nodes have in common.
func TestUnwellNodes(t *testing.T) {
	t.Parallel()
	network, sshd := wire.Check{Name: "message network", Text: "msg0 is down"}, wire.Check{Name: "sshd", Text: "does not answer"}
	before := func(code muster.ConditionCode, ago time.Duration) muster.Condition {
		return muster.Condition{Code: code, Since: at(0).Add(-ago)}
	}
	for name, c := range map[string]struct {
		check wire.Check
		after time.Duration
		had   []muster.Condition
		both  bool // the other node complains, too
		want  muster.NodePhase
	}{
		"not yet":           {check: network, after: 9 * time.Minute},
		"after a while":     {check: network, after: 11 * time.Minute, want: muster.NodeBooting},
		"sshd, too":         {check: sshd, after: 11 * time.Minute, want: muster.NodeBooting},
		"a full disk":       {check: wire.Check{Name: "disk", Text: "hardly any space is left on /tmp"}, after: time.Hour},
		"once a day":        {check: sshd, after: 11 * time.Minute, had: []muster.Condition{before(anew, time.Hour)}},
		"the day after":     {check: sshd, after: 11 * time.Minute, had: []muster.Condition{before(anew, 25*time.Hour)}, want: muster.NodeBooting},
		"it did not help":   {check: network, after: 11 * time.Minute, had: []muster.Condition{before(anew, time.Hour)}, want: muster.NodeFencing},
		"it may help yet":   {check: network, after: 9 * time.Minute, had: []muster.Condition{before(anew, time.Hour)}},
		"nor did a move":    {check: network, after: 11 * time.Minute, had: []muster.Condition{before(anew, time.Hour), before(elsewhere, time.Minute)}},
		"the configuration": {check: wire.Check{Name: "configuration", Text: "user video"}, after: time.Hour},
		"in common":         {check: wire.Check{Name: "home", Text: "it does not answer"}, after: time.Hour, both: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			complains := func(s *Observation) { s.Report.Checks = []wire.Check{c.check} }
			v := two(muster.ClusterReady, muster.NodeReady, says("m1", "ready", 1, nil), says("m2", "ready", 1, nil), knows("m2", complains))
			code := map[bool]muster.ConditionCode{true: unfit, false: unhealthy}[jobsNeed(c.check.Name)]
			if c.both {
				knows("m1", complains)(&v)
				v.Nodes[0].Conditions = []muster.Condition{{Code: code, Since: v.Now.Add(-c.after), Text: "x"}}
			}
			v.Nodes[1].Conditions = append(slices.Clone(c.had), muster.Condition{Code: code, Since: v.Now.Add(-c.after), Text: "x"})
			for i := range c.had {
				v.Nodes[1].Conditions[i].Since = v.Now.Add(c.had[i].Since.Sub(at(0)))
			}
			if places := wanted(v)[v.Machines["m2"].Provider]; places > 0 != (c.want == muster.NodeBooting) {
				t.Errorf("it is to have %d places to start in", places)
			}
			actions, _ := Decide(v)
			phase, blamed := muster.NodePhase(""), false
			for _, a := range actions {
				switch a := a.(type) {
				case Boot:
					phase = a.Node.Phase
				case SetNode:
					if a.Node.Phase != muster.NodeReady {
						phase = a.Node.Phase
					}
				case SetMachine:
					blamed = blamed || a.Machine.Phase == muster.MachineSuspect
				}
			}
			if phase != c.want || blamed {
				t.Errorf("its node is %q, want %q; its machine is suspect: %v; %+v", phase, c.want, blamed, actions)
			}
		})
	}
}
