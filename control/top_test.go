package control_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/wire"
)

// What machines have is known before their agents say so: a cluster is shown
// with it as soon as it has them, and a node that joins as well.
func TestTopShowsMachinesBeforeTheyReport(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 6})
	look := func(ref string, nodes int) wire.Top {
		t.Helper()
		top, err := s.Control.Top(t.Context(), root(), ref)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range top.Clusters {
			if c.Name == "b" && (c.Nodes != nodes || c.Cores != 4*nodes || c.MemoryTotal != int64(nodes)*8<<30) {
				t.Errorf("%d nodes: %+v", nodes, c)
			}
		}
		return top
	}
	ready(t, s, "a", 1, "")
	look("", 0) // what it counts is remembered for a while
	id := ready(t, s, "b", 2, "")
	look("", 2)
	look("b", 2)
	if _, _, err := s.Control.Scale(t.Context(), root(), string(id), wire.ScaleRequest{Nodes: 4}); err != nil {
		t.Fatal(err)
	}
	look("", 4)
	top := look("b", 4)
	if len(top.Nodes) != 4 || len(top.Clusters) != 1 {
		t.Fatalf("%+v", top)
	}
	for _, n := range top.Nodes {
		if n.Cores != 4 || n.Memory != 8<<30 || n.Usage != nil {
			t.Errorf("%+v", n)
		}
	}
	// Who may see the cluster may see that of it, whoever has the machines.
	mine, err := s.Control.Top(t.Context(), muster.Actor{Name: "alice", Projects: []string{"default"}}, "b")
	if err != nil || mine.Clusters[0].Cores != 16 {
		t.Errorf("%+v, %v", mine.Clusters, err)
	}
}
