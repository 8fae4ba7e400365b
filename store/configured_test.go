package store

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

// The feed reports which changes nodes are to hear of, and only those.
func TestReconfigures(t *testing.T) {
	t.Parallel()
	n := muster.Node{Name: "n01", Phase: muster.NodeReady, Machine: "m1"}
	for name, c := range map[string]struct {
		set  func(*muster.Node)
		want bool
	}{
		"nothing":   {func(*muster.Node) {}, false},
		"phase":     {func(n *muster.Node) { n.Phase = muster.NodeUnreachable }, false},
		"condition": {func(n *muster.Node) { n.Conditions = []muster.Condition{{Code: "late"}} }, false},
		"attempt":   {func(n *muster.Node) { n.Attempt++ }, false},
		"hold":      {func(n *muster.Node) { n.Hold = true }, true},
		"leave":     {func(n *muster.Node) { n.Leave = true }, true},
		"down":      {func(n *muster.Node) { n.Down = true }, true},
		"machine":   {func(n *muster.Node) { n.Machine = "m2" }, true},
		"gone":      {func(n *muster.Node) { n.Phase = muster.NodeGone }, true},
	} {
		changed := n
		c.set(&changed)
		if got := reconfigures(changed, n); (got != "") != c.want {
			t.Errorf("%s: %q", name, got)
		}
		if got := reconfigures(n, changed); (got != "") != c.want {
			t.Errorf("%s, back: %q", name, got)
		}
	}
	old := muster.Cluster{ID: "c-1", Name: "cfd", Spec: muster.Spec{Users: []string{"alice"}}}
	for name, c := range map[string]struct {
		set  func(*muster.Cluster)
		want bool
	}{
		"phase":     {func(c *muster.Cluster) { c.Phase = muster.ClusterReady }, false},
		"condition": {func(c *muster.Cluster) { c.Conditions = []muster.Condition{{Code: "late"}} }, false},
		"wish":      {func(c *muster.Cluster) { c.Spec.Nodes, c.Generation = 7, 2 }, false},
		"users":     {func(c *muster.Cluster) { c.Spec.Users = []string{"alice", "bob"} }, true},
		"end":       {func(c *muster.Cluster) { c.Expires = time.Unix(1, 0) }, true},
		"ending":    {func(c *muster.Cluster) { c.Ending = time.Unix(1, 0) }, true},
		"notice":    {func(c *muster.Cluster) { c.Notices = []muster.Notice{{ID: 1}} }, true},
		"reserved": {func(c *muster.Cluster) {
			c.Measurement = &muster.Measurement{Phase: muster.MeasurementWanted, Reserve: []string{"n01"}}
		}, true},
		"measured": {func(c *muster.Cluster) {
			c.Measurement = &muster.Measurement{Phase: muster.MeasurementDone, Reserve: []string{"n01"}}
		}, false},
		"volumes": {func(c *muster.Cluster) { c.Spec.Volumes = []muster.VolumeUse{{Volume: "v-1"}} }, true},
	} {
		changed := old
		c.set(&changed)
		if got := reconfiguresAll(changed, old); (got != "") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	pausing := old
	for _, p := range []muster.OnPause{muster.PauseSave, muster.PauseHibernate} {
		pausing.Phase, pausing.Pause = muster.ClusterPausing, &muster.Pause{OnPause: p}
		suspended := pausing
		suspended.Pause = &muster.Pause{OnPause: p, Suspended: time.Unix(1, 0)}
		if got := reconfiguresAll(suspended, pausing); got == "" {
			t.Errorf("%s: nodes do not hear that they are to write to their volumes", p)
		}
	}
	if got := reconfiguresAll(old, muster.Cluster{}); got != "" {
		t.Errorf("a cluster that is new has no nodes to tell: %q", got)
	}
}
