package place

import (
	"github.com/muster-hpc/muster"
)

// Grouping divides the machines of a site into those that one cluster may be made of. It
// depends on two wishes of a request only, and is made once for many.
type Grouping struct {
	group    []int32 // by machine
	fabric   []int32 // by machine
	fabricOf []int32 // by group
	fabrics  int
}

// Grouping makes one of the machines of a site.
func (p Planner) Grouping(machines []muster.Machine, mixed bool, within string) *Grouping {
	type key struct {
		fabric      int32
		class, rack string
	}
	g := &Grouping{group: make([]int32, len(machines)), fabric: make([]int32, len(machines))}
	groups, fabrics := map[key]int32{}, map[string]int32{}
	for j := range machines {
		m := &machines[j]
		name := p.Providers.Fabric(m)
		f, ok := fabrics[name]
		if !ok {
			f = int32(len(fabrics))
			fabrics[name] = f
		}
		k := key{fabric: f}
		if !mixed {
			k.class = m.Facts.Class
		}
		if within == "rack" {
			k.rack = m.Facts.Rack
		}
		i, ok := groups[k]
		if !ok {
			i = int32(len(g.fabricOf))
			groups[k] = i
			g.fabricOf = append(g.fabricOf, f)
		}
		g.group[j], g.fabric[j] = i, f
	}
	g.fabrics = len(fabrics)
	return g
}

// Counter is Planner.Capacity for machines that come and go one at a time: the same
// machines have the same capacity.
type Counter struct {
	g         *Grouping
	nodes     int32
	auxiliary int32
	sizes     []int32 // by group: machines that fit nodes
	heads     []int32 // by fabric: machines that may carry a head
	most      int32   // of capacities, where there are no heads beside the nodes
	exact     bool    // most holds
}

// NewCounter makes a Counter without machines for requests like spec.
func NewCounter(g *Grouping, spec muster.Spec) *Counter {
	return &Counter{
		g: g, nodes: int32(min(spec.Nodes, 1<<30)), auxiliary: int32(auxiliary(spec)),
		sizes: make([]int32, len(g.fabricOf)), heads: make([]int32, g.fabrics), exact: true,
	}
}

// Reset takes every machine out, and counts for requests like spec from now on.
func (c *Counter) Reset(spec muster.Spec) {
	clear(c.sizes)
	clear(c.heads)
	c.nodes, c.auxiliary = int32(min(spec.Nodes, 1<<30)), int32(auxiliary(spec))
	c.most, c.exact = 0, true
}

// Add puts a machine in, which fits the request's nodes, or only a head or a login node.
func (c *Counter) Add(machine int32, node bool) {
	if node {
		i := c.g.group[machine]
		c.sizes[i]++
		c.most = max(c.most, c.sizes[i])
	}
	if c.auxiliary > 0 {
		c.heads[c.g.fabric[machine]]++
	}
}

// Remove takes out a machine that was put in the same way.
func (c *Counter) Remove(machine int32, node bool) {
	if node {
		c.sizes[c.g.group[machine]]--
		c.exact = false
	}
	if c.auxiliary > 0 {
		c.heads[c.g.fabric[machine]]--
	}
}

// Capacity is how many compute nodes find a place, at most as many as are asked.
func (c *Counter) Capacity() int {
	if c.auxiliary == 0 {
		if !c.exact {
			c.most, c.exact = 0, true
			for _, n := range c.sizes {
				c.most = max(c.most, n)
			}
		}
		return int(min(c.most, c.nodes))
	}
	most := int32(0)
	for i, n := range c.sizes {
		if n == 0 {
			continue
		}
		outside := c.heads[c.g.fabricOf[i]] - n
		most = max(most, n-max(0, c.auxiliary-outside))
	}
	return int(min(most, c.nodes))
}
