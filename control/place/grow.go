package place

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// ScaleOut chooses more machines for a cluster that has some: the nearest ones,
// with no head among them. What other requests wait for it reports as Planner
// does.
type ScaleOut struct {
	Planner
	// Near are the machines that the cluster has.
	Near []muster.Machine
	// Logins: the machines are for login nodes, for which service machines are
	// best, then the smallest.
	Logins bool
}

// Capacity is how many of the machines come into question, at most spec.Nodes.
func (g ScaleOut) Capacity(spec muster.Spec, compute, _ []*muster.Machine) int {
	return min(len(g.reachable(compute, spec.Within)), spec.Nodes)
}

// Plan gives machines to as many nodes as there is Capacity for. The nodes have no names
// yet: Spots gives them. It returns false when they are fewer than spec.Min.
func (g ScaleOut) Plan(id muster.ClusterID, spec muster.Spec, compute, _ []*muster.Machine) (muster.Plan, bool) {
	list := g.reachable(compute, spec.Within)
	if len(list) < max(1, spec.Min) {
		return muster.Plan{}, false
	}
	if g.Logins {
		slices.SortStableFunc(list, func(a, b *muster.Machine) int {
			return cmp.Or(first(a.Facts.Service, b.Facts.Service), g.wasteOf(a).compare(g.wasteOf(b)), compareNatural(string(a.ID), string(b.ID)))
		})
		list = list[:min(spec.Nodes, len(list))]
	} else {
		list = g.beside(id, list, spec.Nodes)
		g.order(list)
		if g.Tree != nil { // the nearest come first
			far := distances(g.Tree, g.computes())
			slices.SortStableFunc(list, func(a, b *muster.Machine) int { return cmp.Compare(far(a), far(b)) })
		}
	}
	plan := muster.Plan{Cluster: id, Racks: rackCount(list), Distance: g.whole(list)}
	for _, m := range list {
		plan.Assign = append(plan.Assign, muster.Assignment{Machine: m.ID, Rack: m.Facts.Rack})
	}
	return plan, true
}

// beside takes n of the machines, the nearest to those that the cluster has, and to each
// other.
func (g ScaleOut) beside(id muster.ClusterID, list []*muster.Machine, n int) []*muster.Machine {
	if g.Tree == nil {
		return nearby(nil, list, g.Near, n)
	}
	near := g.Planner
	near.Near = g.computes()
	return near.choose(muster.PlacePack, seed(id), list, min(n, len(list)))
}

// computes are the machines of the compute nodes that the cluster has.
func (g ScaleOut) computes() []muster.Machine {
	return slices.DeleteFunc(slices.Clone(g.Near), func(m muster.Machine) bool { return !strings.HasPrefix(m.Node, "n") })
}

// whole says how far the compute nodes are from each other then; nil for login nodes.
func (g ScaleOut) whole(list []*muster.Machine) *muster.PlanDistance {
	if g.Logins {
		return nil
	}
	all := slices.Clone(list)
	for _, m := range g.computes() {
		all = append(all, &m)
	}
	return g.distance(0, all, all)
}

// reachable leaves out the machines that cannot join the message network of those
// that the cluster has, or are not in what it is kept within, and those of other sets than
// its own.
func (g ScaleOut) reachable(list []*muster.Machine, within string) []*muster.Machine {
	if len(g.Near) == 0 {
		return nil
	}
	list = slices.DeleteFunc(slices.Clone(list), func(m *muster.Machine) bool { return !g.Reaches(m, within, g.Near) })
	for i := range g.Near {
		if set := g.Near[i].Facts.Set; set != "" {
			return ofSet(list, set)
		}
	}
	most := list[:0:0]
	for _, c := range choices(list, nil) {
		if len(c.compute) > len(most) {
			most = c.compute
		}
	}
	return most
}

// Spots gives names and indices to k more nodes of a role: those of nodes that
// are gone first, then the next ones. Compute nodes keep the width of the
// numbers that the cluster has.
func Spots(nodes []muster.Node, role muster.Role, k int) []muster.Node {
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b muster.Node) int { return cmp.Compare(a.Index, b.Index) })
	out := make([]muster.Node, 0, max(0, k))
	have, next := make(map[string]bool, len(nodes)), 0
	width := 1
	for _, n := range sorted {
		have[n.Name] = true
		next = max(next, n.Index+1)
		if n.Role == muster.RoleCompute && len(n.Name) > 1 {
			width = max(width, len(n.Name)-1)
		}
		if n.Role == role && n.Phase == muster.NodeGone && !n.Head && len(out) < k {
			out = append(out, n)
		}
	}
	size := 1 // a cluster of so many nodes has names of that width
	for range width - 1 {
		size *= 10
	}
	for i := 1; len(out) < k; i++ {
		name := LoginName(i)
		if role == muster.RoleCompute {
			name = NodeName(i, size)
		}
		if have[name] {
			continue
		}
		out = append(out, muster.Node{Name: name, Index: next, Role: role})
		next++
	}
	return out
}
