package slurm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster/internal/nodeset"
)

// unplaced is the switch of nodes of which nobody knows where they stand, and joint that
// which joins what nothing else joins: Slurm gives a job no nodes that nothing joins.
const (
	unplaced = "unplaced"
	joint    = "joint"
)

// branch is a stand with what is below it in a cluster.
type branch struct {
	name  string
	below []*branch
	nodes []string
}

// in is the branch of a name, which is made where there is none.
func (b *branch) in(name string) *branch {
	for _, c := range b.below {
		if c.name == name {
			return c
		}
	}
	c := &branch{name: name}
	b.below = append(b.below, c)
	return c
}

// topologyConf is the tree of the compute nodes, from the innermost stand that holds all
// of them. A stand with both nodes and other stands gets a switch of its own for the nodes:
// Slurm's switches have either.
func topologyConf(c Cluster) string {
	root := &branch{}
	for _, n := range c.Nodes {
		if !n.Compute {
			continue
		}
		at := root
		for _, name := range c.Places[n.Name] {
			at = at.in(name)
		}
		if at == root {
			at = root.in(unplaced)
		}
		at.nodes = append(at.nodes, n.Name)
	}
	for len(root.below) == 1 && len(root.nodes) == 0 {
		root = root.below[0]
	}
	if root.name == "" {
		root.name = joint
	}
	var b strings.Builder
	b.WriteString("# Rendered by Muster: where the machines of the nodes stand. Changes here do not last.\n")
	w := switches{b: &b, taken: map[string]bool{}}
	w.write(root)
	return b.String()
}

type switches struct {
	b     *strings.Builder
	taken map[string]bool
}

// write writes what is below first, and returns the name of the switch.
func (w *switches) write(t *branch) string {
	var names []string
	slices.SortFunc(t.below, func(a, b *branch) int { return strings.Compare(a.name, b.name) })
	for _, c := range t.below {
		names = append(names, w.write(c))
	}
	if len(t.nodes) > 0 && len(names) > 0 {
		direct := w.name(t.name + "-direct")
		fmt.Fprintf(w.b, "SwitchName=%s Nodes=%s\n", direct, nodeset.Fold(t.nodes))
		names = append(names, direct)
	}
	name := w.name(t.name)
	if len(names) > 0 {
		fmt.Fprintf(w.b, "SwitchName=%s Switches=%s\n", name, nodeset.Fold(names))
	} else {
		fmt.Fprintf(w.b, "SwitchName=%s Nodes=%s\n", name, nodeset.Fold(t.nodes))
	}
	return name
}

// name is one that Slurm can read and no other switch has.
func (w *switches) name(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name)
	out := plain
	for i := 2; w.taken[out]; i++ {
		out = fmt.Sprintf("%s-%d", plain, i)
	}
	w.taken[out] = true
	return out
}
