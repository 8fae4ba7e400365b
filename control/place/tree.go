package place

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
)

// fabric is the message network that a machine can join, in a cluster that is kept within
// something. Two data centres are two networks unless it may span them.
func (p Planner) fabric(m *muster.Machine, within string) string {
	f := p.Providers.Fabric(m)
	if p.Tree == nil || within == muster.WithinAnySite {
		return f
	}
	if s := p.Tree.Site(m.ID); s != "" {
		return f + " in " + s
	}
	return f
}

// zone names the machines that a cluster may be made of which is kept within something.
func (p Planner) zone(m *muster.Machine, within string) string {
	switch {
	case within == muster.WithinRack || within == muster.WithinLeaf && p.Tree == nil:
		return m.Facts.Rack
	case p.Tree != nil:
		return p.Tree.Zone(m.ID, within)
	case narrow(within):
		return "\x00" + string(m.ID) // nothing is known of chassis and rooms
	}
	return ""
}

// narrow reports whether a cluster is kept within less than a data centre.
func narrow(within string) bool {
	return within != "" && within != muster.WithinSite && within != muster.WithinAnySite
}

// Zone is what a cluster is kept within that has these machines: that of its first compute
// node; "" where it may be anywhere.
func (p Planner) Zone(within string, near []muster.Machine) string {
	if !narrow(within) {
		return ""
	}
	for i := range near {
		if strings.HasPrefix(near[i].Node, "n") {
			return p.zone(&near[i], within)
		}
	}
	return ""
}

// Zones names what the compute nodes of a cluster stand in that is kept within something, each once and sorted: one,
// where it is as was asked; none, where it may be anywhere. Of a machine of which nothing is known it is that alone.
func (p Planner) Zones(within string, machines []muster.Machine) (list []string) {
	if !narrow(within) {
		return nil
	}
	for i := range machines {
		if m := &machines[i]; strings.HasPrefix(m.Node, "n") {
			zone := p.zone(m, within)
			if name, alone := strings.CutPrefix(zone, "\x00"); alone {
				zone = "machine " + name
			}
			list = append(list, zone)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Kept names what a cluster that has these machines cannot leave, with its kind: "leaf A",
// "data centre X"; "" where all machines of its network come into question.
func (p Planner) Kept(within string, near []muster.Machine) string {
	first := slices.IndexFunc(near, func(m muster.Machine) bool { return strings.HasPrefix(m.Node, "n") })
	switch zone := p.Zone(within, near); {
	case strings.HasPrefix(zone, "\x00"): // nothing is known of what it is in
		return "machine " + string(near[first].ID)
	case zone != "" && p.Tree != nil && within != muster.WithinRack:
		for _, s := range p.Tree.Around(near[first].ID) {
			if s.Name == zone {
				return string(s.Kind) + " " + zone
			}
		}
		return zone
	case zone != "":
		return muster.WithinRack + " " + zone
	case len(near) > 0 && p.Tree != nil && within != muster.WithinAnySite && p.Tree.Site(near[0].ID) != "":
		return "data centre " + p.Tree.Site(near[0].ID)
	}
	return ""
}

// Reaches reports whether a machine may join a cluster that has the machines near: it is
// in their message network and data centre, and in what the cluster is kept within.
func (p Planner) Reaches(m *muster.Machine, within string, near []muster.Machine) bool {
	if len(near) == 0 {
		return true
	}
	zone := p.Zone(within, near)
	return p.fabric(m, within) == p.fabric(&near[0], within) && (zone == "" || p.zone(m, within) == zone)
}

// packed takes n of the machines, which are sorted best first, by the tree.
func (p Planner) packed(how muster.Placement, s uint64, all []ranked, have []muster.Machine, n int) []ranked {
	ids := make([]muster.MachineID, len(all))
	byID := make(map[muster.MachineID]ranked, len(all))
	for i, r := range all {
		ids[i], byID[r.m.ID] = r.m.ID, r
	}
	free := p.Tree.Sorted(ids)
	var chosen []muster.MachineID
	if how == muster.PlaceSpread {
		chosen = p.Tree.Spread(free, n, s)
	} else {
		if len(have) > 0 {
			free = free.Beside(p.Tree, idsOf(have))
		}
		chosen = p.Tree.Pack(free, n, s)
	}
	out := make([]ranked, len(chosen))
	for i, id := range chosen {
		out[i] = byID[id]
	}
	return out
}

func idsOf(list []muster.Machine) []muster.MachineID {
	out := make([]muster.MachineID, len(list))
	for i := range list {
		out[i] = list[i].ID
	}
	return out
}

// distance says how far the chosen machines are from each other, and what the nearest of
// those that could be had would cost; nil: nothing is known of that.
func (p Planner) distance(s uint64, chosen, from []*muster.Machine) *muster.PlanDistance {
	if p.Tree == nil || len(chosen) < 2 {
		return nil
	}
	ids := func(list []*muster.Machine) []muster.MachineID {
		out := make([]muster.MachineID, len(list))
		for i, m := range list {
			out[i] = m.ID
		}
		return out
	}
	d := p.Tree.Distance(ids(chosen), 0)
	d.Least = d.Cost
	if best := p.Tree.Pack(p.Tree.Sorted(ids(from)), len(chosen), s); best != nil {
		d.Least = min(d.Least, p.Tree.Cost(best))
	}
	return d
}

// least is what communication between n of the machines costs at least.
func (p Planner) least(machines []*muster.Machine, n int) float64 {
	ids := make([]muster.MachineID, len(machines))
	for i, m := range machines {
		ids[i] = m.ID
	}
	if at := p.Tree.At(ids[0]); !slices.ContainsFunc(ids, func(id muster.MachineID) bool { return p.Tree.At(id) != at }) {
		// All are behind one switch: those with the fastest links.
		slices.SortFunc(ids, func(a, b muster.MachineID) int { return cmp.Compare(p.Tree.Link(b), p.Tree.Link(a)) })
		return p.Tree.Cost(ids[:n])
	}
	return p.Tree.Cost(p.Tree.Pack(p.Tree.Sorted(ids), n, 0))
}

// order puts neighbours side by side.
func (p Planner) order(list []*muster.Machine) {
	slices.SortFunc(list, func(a, b *muster.Machine) int {
		if p.Tree == nil {
			return byRackThenID(a, b)
		}
		return cmp.Or(cmp.Compare(p.Tree.Order(a.ID), p.Tree.Order(b.ID)), byRackThenID(a, b))
	})
}

// distances are how far candidates are from machines that serve already: the sum of the
// switches between. Machines of one stand are alike.
func distances(tree *topology.Tree, near []muster.Machine) func(*muster.Machine) int {
	count, some := map[int]int{}, map[int]muster.MachineID{}
	for i := range near {
		at := tree.At(near[i].ID)
		count[at]++
		some[at] = near[i].ID
	}
	known := map[int]int{}
	return func(m *muster.Machine) int {
		at := tree.At(m.ID)
		d, ok := known[at]
		if !ok {
			for other, n := range count {
				d += n * tree.Switches(m.ID, some[other])
			}
			known[at] = d
		}
		return d
	}
}
