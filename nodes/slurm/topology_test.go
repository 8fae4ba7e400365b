package slurm_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
	"github.com/muster-hpc/muster/nodes/slurm"
	"github.com/muster-hpc/muster/wire"
)

// topologyOf is the file that a cluster's head gets; "" where it gets none.
func topologyOf(c slurm.Cluster) string {
	for _, f := range slurm.Files(c) {
		if f.Path == "/etc/slurm/topology.conf" {
			return f.Content
		}
	}
	return ""
}

// Every compute node is behind one switch, one switch joins all, and nodes that stand in
// the same are behind the same switch.
func TestTopologyIsTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := slurm.Cluster{Name: "x", Head: "head", HeadAddress: "10.0.0.1", Version: "24.11.5", Tree: true, Places: map[string][]string{}}
		c.Nodes = []wire.Host{{Name: "head", Address: "10.0.0.1"}}
		var machines []muster.Machine
		for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
			name := fmt.Sprintf("n%02d", i+1)
			c.Nodes = append(c.Nodes, wire.Host{Name: name, Address: fmt.Sprintf("10.0.0.%d", i+2), Compute: true})
			machines = append(machines, muster.Machine{ID: muster.MachineID(name)})
			if way := rapid.SampledFrom([]string{"", "a", "a b", "a b c", "a d", "e", "e f", "leaf r1", "e/1"}).Draw(t, "way"); way != "" {
				c.Places[name] = strings.Fields(way)
			}
		}
		text := topologyOf(c)
		tree, err := topology.Read([]byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		k, roots := topology.New(&tree, machines), 0
		for _, s := range tree.Stands {
			if s.In == "" {
				roots++
			}
		}
		if roots != 1 || strings.Contains(text, "head") {
			t.Fatalf("%d roots in\n%s", roots, text)
		}
		for _, a := range machines {
			if k.At(a.ID) == 0 {
				t.Fatalf("%s is behind no switch:\n%s", a.ID, text)
			}
			for _, b := range machines {
				same := strings.Join(c.Places[string(a.ID)], " ") == strings.Join(c.Places[string(b.ID)], " ")
				if same != (k.At(a.ID) == k.At(b.ID)) {
					t.Fatalf("%s and %s:\n%s", a.ID, b.ID, text)
				}
			}
		}
	})
}

// A cluster that was first configured without a tree stays so.
func TestNoTopologyWithoutTree(t *testing.T) {
	t.Parallel()
	c := clusters()["24.11-tree"]
	c.Tree = false
	if topologyOf(c) != "" || strings.Contains(slurm.Files(c)[0].Content, "Topology") {
		t.Error("it has a tree")
	}
}
