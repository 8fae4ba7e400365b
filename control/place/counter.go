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
	fabrics  int     // of machines that can serve one cluster: see fabric
	// Where there are sets, a group holds the machines of one set or of none. plainOf is the
	// group of none that a group of a set is joined by, -1: there is none; plainFabric the
	// fabric of none beside that of a set, -1: it is that itself.
	sets        bool
	plainOf     []int32
	plainFabric []int32
}

// Grouping makes one of the machines of a site.
func (p Planner) Grouping(machines []muster.Machine, mixed bool, within string) *Grouping {
	type key struct {
		fabric           int32
		class, zone, set string
	}
	type network struct{ fabric, set string }
	g := &Grouping{group: make([]int32, len(machines)), fabric: make([]int32, len(machines))}
	groups, fabrics := map[key]int32{}, map[network]int32{}
	var keys []key
	var networks []network
	for j := range machines {
		m := &machines[j]
		name := network{p.fabric(m, within), m.Facts.Set}
		g.sets = g.sets || m.Facts.Set != ""
		f, ok := fabrics[name]
		if !ok {
			f = int32(len(fabrics))
			fabrics[name] = f
			networks = append(networks, name)
		}
		k := key{fabric: f, set: m.Facts.Set}
		if !mixed {
			k.class = m.Facts.Class
		}
		k.zone = p.zone(m, within)
		i, ok := groups[k]
		if !ok {
			i = int32(len(g.fabricOf))
			groups[k] = i
			keys = append(keys, k)
			g.fabricOf = append(g.fabricOf, f)
		}
		g.group[j], g.fabric[j] = i, f
	}
	g.fabrics = len(fabrics)
	if !g.sets {
		return g
	}
	for _, n := range networks {
		plain := int32(-1)
		if f, ok := fabrics[network{fabric: n.fabric}]; ok && n.set != "" {
			plain = f
		}
		g.plainFabric = append(g.plainFabric, plain)
	}
	for _, k := range keys {
		plain := int32(-1)
		if f := g.plainFabric[k.fabric]; f >= 0 {
			if i, ok := groups[key{fabric: f, class: k.class, zone: k.zone}]; ok {
				plain = i
			}
		}
		g.plainOf = append(g.plainOf, plain)
	}
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

// capacityOfSets is Capacity where there are sets.
func (c *Counter) capacityOfSets() int {
	var beside []int32 // by fabric of none: the most heads that a set brings
	if c.auxiliary > 0 {
		beside = make([]int32, len(c.heads))
		for f, plain := range c.g.plainFabric {
			if plain >= 0 {
				beside[plain] = max(beside[plain], c.heads[f])
			}
		}
	}
	most := int32(0)
	for i, n := range c.sizes {
		if p := c.g.plainOf[i]; p >= 0 {
			n += c.sizes[p]
		}
		if n > 0 && c.auxiliary > 0 {
			f := c.g.fabricOf[i]
			heads := c.heads[f] + beside[f]
			if p := c.g.plainFabric[f]; p >= 0 {
				heads += c.heads[p]
			}
			n -= max(0, c.auxiliary-(heads-n))
		}
		most = max(most, n)
	}
	return int(min(most, c.nodes))
}

// Capacity is how many compute nodes find a place, at most as many as are asked.
func (c *Counter) Capacity() int {
	if c.g.sets {
		return c.capacityOfSets()
	}
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
