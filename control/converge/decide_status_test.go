package converge

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// A ready node that the scheduler does not have is told of, but for the moment
// that it may take to register.
func TestANodeThatTheSchedulerLacksIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state string // of n02
		ready int    // since when
		told  bool
	}{
		{"", 60, true},
		{"future", 60, true},
		{"", 95, false},
		{"idle", 60, false},
		{"down*", 60, false}, // it has it; what ails it is told elsewhere
	} {
		v := two(muster.ClusterReady, muster.NodeReady,
			says("m1", "ready", 1, map[string]string{"n01": "idle", "n02": c.state}), says("m2", "ready", 1, nil),
			node(1, func(n *muster.Node) { n.PhaseSince = at(c.ready) }))
		told := false
		actions, _ := Decide(v)
		for _, a := range actions {
			if s, ok := a.(SetCluster); ok {
				told = told || hasCondition(s.Cluster.Conditions, "not-in-scheduler")
			}
		}
		if told != c.told {
			t.Errorf("%q since %d: told %v: %s", c.state, c.ready, told, brief(actions))
		}
	}
}
