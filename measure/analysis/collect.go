package analysis

import (
	"cmp"
	"maps"
	"slices"

	"github.com/muster-hpc/muster/internal/stat"
)

// Node is a node that is measured.
type Node struct {
	Name  string // what its host calls itself
	Class string
	Place Place
}

// Collected is what several launches said, sorted by what it is about.
type Collected struct {
	Nodes   []Figure // of each node by itself; of one class each
	Fabrics []Fabric // between two nodes
	Whole   []Figure // of all together; the only series has Node -1
	// Wrong are results that were not right, with the launch in which that was.
	Wrong []Wrong
	// Strangers are hosts that said something and are none of the nodes.
	Strangers []string
}

// Distances are how far apart nodes are that were measured with each other.
func (c Collected) Distances() []Distance {
	var list []Distance
	for _, f := range c.Fabrics {
		for _, l := range f.Links {
			if !slices.Contains(list, l.Distance) {
				list = append(list, l.Distance)
			}
		}
	}
	return list
}

// Wrong is a result that was not right: a finding, whatever the figures say.
type Wrong struct {
	Node   int // -1: of all together
	Peer   int // -1: there is none
	Launch int // its number in the list
	Metric string
	Text   string
}

// key distinguishes figures.
type key struct {
	metric  string
	size    int64
	threads int
	class   string // of nodes
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.metric, o.metric), cmp.Compare(k.size, o.size), cmp.Compare(k.threads, o.threads), cmp.Compare(k.class, o.class))
}

// place is what a figure is of: a node, a pair, or all (-1, -1).
type place struct{ a, b int }

// gathered are the values of one figure at one place, by launch. Between two nodes
// they are of the way from the first to the second, and back.
type gathered struct {
	unit     string
	launches map[int][2][]float64
	min, max float64
	samples  int
}

// Collect sorts samples of several launches. What one launch says of one thing
// several times, in rounds or by several ranks of one node, counts as their median,
// of the worse way between two nodes: a launch is one replication, whatever happens
// in it.
func Collect(nodes []Node, launches []Launch) Collected {
	c := collector{at: map[string]int{}, found: map[key]map[place]*gathered{}, nodes: nodes}
	for i, n := range nodes {
		c.at[n.Name] = i
	}
	for i, l := range launches {
		for _, s := range l.Samples {
			if !l.Mode.Sweeps() { // what is shown by itself: see Sweeps
				c.take(i, s)
			}
		}
		for _, s := range l.Findings {
			if a, b, _, ok := c.where(s); ok {
				if a == b { // two ranks of one node
					b = -1
				}
				c.out.Wrong = append(c.out.Wrong, Wrong{Node: a, Peer: b, Launch: i, Metric: s.Metric, Text: s.Check})
			}
		}
	}
	c.sort()
	return c.out
}

type collector struct {
	nodes []Node
	at    map[string]int // by name
	found map[key]map[place]*gathered
	out   Collected
}

// where finds the nodes of a sample, in their order; back: it is of the way from the
// second to the first. Not ok if it is from elsewhere.
func (c *collector) where(s Sample) (a, b int, back, ok bool) {
	a, b = -1, -1
	for _, of := range []struct {
		host string
		node *int
	}{{s.Host, &a}, {s.Peer, &b}} {
		if of.host == "" {
			continue
		}
		n, known := c.at[of.host]
		if !known {
			if !slices.Contains(c.out.Strangers, of.host) {
				c.out.Strangers = append(c.out.Strangers, of.host)
			}
			return 0, 0, false, false
		}
		*of.node = n
	}
	if a >= 0 && b >= 0 && b < a {
		return b, a, true, true
	}
	return a, b, false, true
}

func (c *collector) take(launch int, s Sample) {
	a, b, back, ok := c.where(s)
	if !ok {
		return
	}
	k := key{metric: s.Metric, size: s.Size, threads: s.Threads}
	if a >= 0 && b < 0 {
		k.class = c.nodes[a].Class
	}
	places := c.found[k]
	if places == nil {
		places = map[place]*gathered{}
		c.found[k] = places
	}
	g := places[place{a, b}]
	if g == nil {
		g = &gathered{unit: s.Unit, launches: map[int][2][]float64{}, min: s.Min, max: s.Max}
		places[place{a, b}] = g
	}
	ways := g.launches[launch]
	way := 0
	if back {
		way = 1
	}
	ways[way] = append(ways[way], s.Value)
	g.launches[launch] = ways
	g.min, g.max = min(g.min, s.Min), max(g.max, s.Max)
	g.samples += s.N
}

// which are the numbers of the launches, in their order.
func (g *gathered) which() []int { return slices.Sorted(maps.Keys(g.launches)) }

// medians are those of the worse way in each launch: what waits for messages waits
// for the slower one, and a mean of both would hide half of what is missing.
func (g *gathered) medians(less bool) []float64 {
	launches := g.which()
	list := make([]float64, len(launches))
	for i, l := range launches {
		there, back := g.launches[l][0], g.launches[l][1]
		switch {
		case len(back) == 0:
			list[i] = stat.Median(there)
		case len(there) == 0:
			list[i] = stat.Median(back)
		case less:
			list[i] = max(stat.Median(there), stat.Median(back))
		default:
			list[i] = min(stat.Median(there), stat.Median(back))
		}
	}
	return list
}

// sort puts everything in a fixed order.
func (c *collector) sort() {
	var keys []key
	for k := range c.found {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.compare)
	for _, k := range keys {
		var places []place
		for p := range c.found[k] {
			places = append(places, p)
		}
		slices.SortFunc(places, func(p, q place) int { return cmp.Or(p.a-q.a, p.b-q.b) })
		f := Figure{Name: k.metric, Size: k.size, Threads: k.threads}
		whole := f
		fabric := Fabric{Name: k.metric, Size: k.size, Nodes: len(c.nodes)}
		for _, p := range places {
			g := c.found[k][p]
			less := LessIsBetter(g.unit)
			s := Series{Node: p.a, Launches: g.medians(less), Min: g.min, Max: g.max, Samples: g.samples}
			switch {
			case p.b >= 0:
				fabric.Unit, fabric.Less = g.unit, less
				fabric.Links = append(fabric.Links, Link{
					Pair: Pair{p.a, p.b}, Distance: Apart(c.nodes[p.a].Place, c.nodes[p.b].Place), Launches: s.Launches, Which: g.which(),
				})
			case p.a >= 0:
				f.Unit, f.Less = g.unit, less
				f.Series = append(f.Series, s)
			default:
				whole.Unit, whole.Less = g.unit, less
				whole.Series = append(whole.Series, s)
			}
		}
		if len(f.Series) > 0 {
			c.out.Nodes = append(c.out.Nodes, f)
		}
		if len(whole.Series) > 0 {
			c.out.Whole = append(c.out.Whole, whole)
		}
		if len(fabric.Links) > 0 {
			c.out.Fabrics = append(c.out.Fabrics, fabric)
		}
	}
	slices.Sort(c.out.Strangers)
}
