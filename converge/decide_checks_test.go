package converge

import (
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// What a node in use says of itself is told of it and of its cluster, by what it is, and
// ends when it is well again. Nothing is repaired for it.
func TestComplaintsAreTold(t *testing.T) {
	t.Parallel()
	bad := func(checks ...wire.Check) func(*View) {
		return knows("m2", func(s *Sight) { s.Report.Checks = checks })
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
	for code, want := range map[string]string{notApplied: "user video: the name is taken", unhealthy: "sshd: does not answer"} {
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
