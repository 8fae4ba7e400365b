package platform

import (
	"maps"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
)

// nodeFacts is what the ranks of one node found, at one number of ranks.
type nodeFacts struct {
	node  muster.PlatformNodes
	ranks int
	cpus  map[int]bool
	near  int
	known bool // whether a rank is near the network card
}

// fact takes the line of a rank.
func (r *reader) fact(line []byte) {
	f, ok := decode[fact](r, "node", line)
	if !ok {
		return
	}
	const unchanged = "give the file that ./measure wrote, unchanged"
	switch {
	case !nodeForm.MatchString(f.Node):
		r.bad("node.node", muster.ReasonBadName, unchanged, "%.70q is no name of a node", f.Node)
		return
	case !within(f.Ranks, 1, mostRanks):
		r.bad("node.ranks", muster.ReasonOutOfRange, unchanged, "%d is no number of ranks", f.Ranks)
		return
	case !within(f.Sockets, 0, 4096) || !within(f.Cores, 0, 1<<16) || f.Memory < 0 || f.Memory > 1<<50:
		r.bad("node.cores", muster.ReasonOutOfRange, unchanged, "no node has %d sockets, %d cores and %d bytes", f.Sockets, f.Cores, f.Memory)
		return
	}
	of := r.facts[f.Ranks]
	if of == nil {
		of = map[string]*nodeFacts{}
		r.facts[f.Ranks] = of
	}
	n := of[f.Node]
	if n == nil {
		if r.nodes++; r.nodes > mostNodes {
			if r.nodes == mostNodes+1 {
				r.bad("node", muster.ReasonTooMany, "measure with fewer numbers of ranks in one file", "more than %d nodes", mostNodes)
			}
			return
		}
		n = &nodeFacts{cpus: map[int]bool{}, node: muster.PlatformNodes{Names: f.Node, Processor: text(f.Processor), Sockets: f.Sockets, Cores: f.Cores, Memory: f.Memory,
			Kernel: text(f.Kernel), Governor: text(f.Governor), Virtualization: text(f.Virtualization), NIC: text(f.NIC), NICCell: f.NICCell}}
		of[f.Node] = n
	}
	n.ranks++
	n.known = n.known || f.Near != nil
	if f.CPU != nil && *f.CPU >= 0 && !n.cpus[*f.CPU] {
		n.cpus[*f.CPU] = true
		if f.Near != nil && *f.Near {
			n.near++
		}
	}
}

// alike is what nodes have in common that are one entry; cell is -1 where it is not known.
type alike struct {
	node muster.PlatformNodes // without names, and without the cell, which is a pointer
	cell int
}

// groups folds nodes that are alike, and counts ranks that had a core of their own.
func (r *reader) groups() ([]muster.PlatformNodes, []muster.PlatformLayout) {
	names := map[alike][]string{}
	layouts := []muster.PlatformLayout{}
	seen := map[string]bool{}
	for _, ranks := range slices.Sorted(maps.Keys(r.facts)) {
		of := r.facts[ranks]
		l := muster.PlatformLayout{Ranks: ranks, Nodes: len(of)}
		near, known := 0, true
		for name, n := range of {
			l.Bound += len(n.cpus)
			near += n.near
			known = known && n.known
			if seen[name] {
				continue
			}
			seen[name] = true
			key := alike{node: n.node, cell: -1}
			if n.node.NICCell != nil {
				key.cell = *n.node.NICCell
			}
			key.node.Names, key.node.NICCell = "", nil
			names[key] = append(names[key], name)
		}
		if known {
			l.Near = &near
		}
		layouts = append(layouts, l)
	}
	nodes := make([]muster.PlatformNodes, 0, len(names))
	for key, list := range names {
		n := key.node
		n.Names = nodeset.Fold(list)
		if key.cell >= 0 {
			n.NICCell = &key.cell
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b muster.PlatformNodes) int { return strings.Compare(a.Names, b.Names) })
	return nodes, layouts
}
