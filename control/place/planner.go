package place

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
)

// Planner chooses machines. It has no state.
type Planner struct {
	// Providers are what the machines of each provider can do.
	Providers muster.Providers
	// Blocks are the machines of other sets that each machine would keep from being used;
	// nil: nothing is known of any.
	Blocks map[muster.MachineID]Blocks
	// Tree is where machines stand; nil: nothing is known beyond racks.
	Tree *topology.Tree
	// Near are machines that the cluster has already: what is packed shall be near to them.
	Near []muster.Machine
}

// group is a set of machines that one cluster may be made of.
type group struct {
	fabric, class, zone string
	machines            []*muster.Machine
	capacity            int // compute nodes it has a place for
	from                choice
}

// Capacity is how many compute nodes of the spec find a place, with a head and
// login nodes, at most spec.Nodes. compute are the machines that fit the nodes,
// each of which may carry a separate head or a login node too; spare may carry
// only these.
func (p Planner) Capacity(spec muster.Spec, compute, spare []*muster.Machine) int {
	most := 0
	for _, g := range p.allGroups(spec, compute, spare, false) {
		most = max(most, g.capacity)
	}
	return most
}

// Plan gives machines to as many nodes as Room tells. It returns false when
// these are fewer than spec.Min. The order of the machines does not matter.
func (p Planner) Plan(id muster.ClusterID, spec muster.Spec, compute, spare []*muster.Machine) (muster.Plan, bool) {
	g := p.bestGroup(spec, seed(id), p.allGroups(spec, compute, spare, true))
	if g == nil || g.capacity < max(1, spec.Min) {
		return muster.Plan{}, false
	}
	s := seed(id)
	compute, spare = g.from.compute, g.from.spare
	chosen := p.choose(spec.Placement, s, g.machines, g.capacity)
	// n01 and n02 are neighbours: nodes are numbered along the racks.
	p.order(chosen)

	plan := muster.Plan{Cluster: id, Racks: rackCount(chosen), Distance: p.distance(s, chosen, g.machines)}
	if !spec.Mixed {
		plan.Class = g.class
	}
	plan.Assign = make([]muster.Assignment, 0, len(chosen)+auxiliary(spec))
	separate := spec.Head == muster.HeadSeparate
	var besides []*muster.Machine
	for range auxiliary(spec) {
		m := p.chooseHead(s, spec.Within, g.fabric, slices.Concat(chosen, besides), compute, spare)
		if m == nil {
			return muster.Plan{}, false
		}
		besides = append(besides, m)
	}
	if separate {
		head := besides[0]
		besides = besides[1:]
		plan.Assign = append(plan.Assign, muster.Assignment{
			Node: "head", Role: muster.RoleHead, Head: true,
			Machine: head.ID, Rack: head.Facts.Rack,
		})
	}
	for i, m := range chosen {
		plan.Assign = append(plan.Assign, muster.Assignment{
			Node:    NodeName(i+1, spec.Nodes),
			Index:   len(plan.Assign),
			Role:    muster.RoleCompute,
			Head:    !separate && i == 0,
			Machine: m.ID,
			Rack:    m.Facts.Rack,
		})
	}
	for i, m := range besides {
		plan.Assign = append(plan.Assign, muster.Assignment{
			Node: LoginName(i + 1), Index: len(plan.Assign), Role: muster.RoleLogin,
			Machine: m.ID, Rack: m.Facts.Rack,
		})
	}
	return plan, true
}

// auxiliary is how many machines a cluster needs besides its compute nodes: for a
// separate head and for login nodes. One kind of machine serves both.
func auxiliary(spec muster.Spec) int { return spec.TotalNodes() - spec.Nodes }

// allGroups are the groups of every choice among sets.
func (p Planner) allGroups(spec muster.Spec, compute, spare []*muster.Machine, members bool) []*group {
	var all []*group
	for _, c := range choices(compute, spare) {
		list := p.groups(spec, c.compute, c.spare, members)
		for _, g := range list {
			g.from = c
		}
		all = append(all, list...)
	}
	return all
}

// groups divides the machines into those that one cluster may be made of.
// members false leaves group.machines empty: only the room is counted.
func (p Planner) groups(spec muster.Spec, compute, spare []*muster.Machine, members bool) []*group {
	type key struct{ fabric, class, zone string }
	found := make(map[key]*group)
	sizes := make(map[*group]int)
	heads := make(map[string]int) // by fabric: machines that may carry the head
	var list []*group
	var last *group // machines of a class lie together: most lookups are spared
	for _, m := range compute {
		k := key{fabric: p.fabric(m, spec.Within)}
		if !spec.Mixed {
			k.class = m.Facts.Class
		}
		k.zone = p.zone(m, spec.Within)
		g := last
		if g == nil || g.fabric != k.fabric || g.class != k.class || g.zone != k.zone {
			g = found[k]
			if g == nil {
				g = &group{fabric: k.fabric, class: k.class, zone: k.zone}
				found[k] = g
				list = append(list, g)
			}
			last = g
		}
		sizes[g]++
		if members {
			g.machines = append(g.machines, m)
		}
	}
	if auxiliary(spec) > 0 {
		for _, g := range list {
			heads[g.fabric] += sizes[g]
		}
		for _, m := range spare {
			heads[p.fabric(m, spec.Within)]++
		}
	}
	for _, g := range list {
		g.capacity = sizes[g]
		// Head and login nodes come from outside the group as far as anything
		// there can carry them; the others take machines of the group.
		if n := auxiliary(spec); n > 0 {
			outside := heads[g.fabric] - sizes[g]
			g.capacity = max(0, g.capacity-max(0, n-outside))
		}
		g.capacity = min(g.capacity, spec.Nodes)
	}
	return list
}

// bestGroup has the most nodes, then wastes least, then suits the placement.
func (p Planner) bestGroup(spec muster.Spec, s uint64, list []*group) *group {
	var best *group
	var bestWaste waste
	suited := -1.0 // how the best one suits, once that was asked
	for _, g := range list {
		if g.capacity < 1 {
			continue
		}
		w := p.groupWaste(g)
		if best == nil {
			best, bestWaste = g, w
			continue
		}
		c := best.capacity - g.capacity
		if c == 0 {
			c = w.compare(bestWaste)
		}
		if c == 0 {
			if suited < 0 {
				suited = p.suits(spec, best)
			}
			now := p.suits(spec, g)
			if c = cmp.Compare(now, suited); c < 0 {
				best, bestWaste, suited = g, w, now
				continue
			}
		}
		if c == 0 && narrow(spec.Within) && spec.Placement == muster.PlacePack {
			// The smallest rack that holds all leaves the large ones whole.
			c = len(g.machines) - len(best.machines)
		}
		if c == 0 {
			c = compareHash(s, g.fabric+"/"+g.class+"/"+g.zone, best.fabric+"/"+best.class+"/"+best.zone)
		}
		if c < 0 {
			best, bestWaste, suited = g, w, -1
		}
	}
	return best
}

// suits is 0 or more, and smaller the better the group's racks suit the placement.
func (p Planner) suits(spec muster.Spec, g *group) float64 {
	switch {
	case spec.Placement == muster.PlacePack && p.Tree != nil:
		return p.least(g.machines, g.capacity)
	case spec.Placement == muster.PlacePack:
		return float64(fewestRacks(g.machines, g.capacity))
	case spec.Placement == muster.PlaceSpread:
		return 1 / float64(rackCount(g.machines))
	}
	return 0
}

func byRackThenID(a, b *muster.Machine) int {
	if c := strings.Compare(a.Facts.Rack, b.Facts.Rack); c != 0 {
		return c
	}
	return compareNatural(string(a.ID), string(b.ID))
}
