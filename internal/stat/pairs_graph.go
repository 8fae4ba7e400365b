package stat

import (
	"fmt"
	"math"
)

// pairGraph is the design of [FitPairs]: which effects each pair sums. Effects
// are numbered: nodes first, then distances.
type pairGraph struct {
	nodes, distances int
	ends             [][3]int // by pair: both nodes and the distance
	links            []int    // by node
	used             []bool   // by distance
	different        int      // pairs of nodes
	rank             int      // effects that there are, less the one constraint
}

func (g *pairGraph) size() int { return g.nodes + g.distances }

// Untold is the error for pairs that leave the effects of some nodes and
// distances open: they could change against those of most nodes without any pair
// showing it. A chain of pairs, or a single round, is an example: the nodes may
// be fast and slow in turn.
type Untold struct {
	Nodes, Distances []int
}

func (u *Untold) Error() string {
	return fmt.Sprintf("stat: the pairs cannot tell the effects of nodes %s and distances %s: measure pairs among them that close rings of three, or take distances together",
		brief(u.Nodes), brief(u.Distances))
}

// brief names the first few of a long list.
func brief(list []int) string {
	if len(list) <= 8 {
		return fmt.Sprint(list)
	}
	return fmt.Sprintf("%v and %d more", list[:8], len(list)-8)
}

// identify finds out whether all effects can be told but for the one constraint,
// and sets the rank.
//
// What pairs do not see are effects with a_i + a_j + b_d = 0 for each pair. Along
// a tree of pairs each node's is then the root's with alternating sign and a sum of
// distances. Each further pair is an equation: one that closes an odd ring fixes
// the root, the others are between the distances alone.
func (g *pairGraph) identify() error {
	next := make([][]int, g.nodes) // pairs by node
	for e, p := range g.ends {
		next[p[0]] = append(next[p[0]], e)
		next[p[1]] = append(next[p[1]], e)
	}
	sign := make([]float64, g.nodes) // of the root; 0 for a node not reached yet
	sum := make([][]float64, g.nodes)
	part := make([]int, g.nodes)
	var parts []*pairPart
	among := equations{width: g.distances}
	for root := range g.nodes {
		if sign[root] != 0 || len(next[root]) == 0 {
			continue
		}
		c := &pairPart{}
		sign[root], sum[root], part[root] = 1, make([]float64, g.distances), len(parts)
		queue := []int{root}
		for len(queue) > 0 {
			i := queue[0]
			queue = queue[1:]
			for _, e := range next[i] {
				p := g.ends[e]
				j, d := p[0]+p[1]-i, p[2]-g.nodes
				if sign[j] == 0 {
					sign[j], sum[j], part[j] = -sign[i], make([]float64, g.distances), len(parts)
					for k, v := range sum[i] {
						sum[j][k] = -v
					}
					sum[j][d]--
					queue = append(queue, j)
					continue
				}
				row := make([]float64, g.distances)
				for k := range row {
					row[k] = sum[i][k] + sum[j][k]
				}
				row[d]++
				if rest := c.fix(sign[i]+sign[j], row); rest != nil {
					among.add(rest)
				}
			}
		}
		parts = append(parts, c)
	}
	// All directions that no pair sees, each as effects of nodes and distances.
	var open [][]float64
	expand := func(roots, b []float64) []float64 {
		v := make([]float64, g.size())
		for i := range g.nodes {
			if sign[i] == 0 {
				continue
			}
			v[i] = sign[i] * roots[part[i]]
			for k, s := range sum[i] {
				v[i] += s * b[k]
			}
		}
		copy(v[g.nodes:], b)
		return v
	}
	for _, b := range among.null(g.used) {
		roots := make([]float64, len(parts))
		for c, p := range parts {
			for k, v := range p.row {
				roots[c] -= v * b[k] / 2
			}
		}
		open = append(open, expand(roots, b))
	}
	for c, p := range parts {
		if p.row == nil {
			roots := make([]float64, len(parts))
			roots[c] = 1
			open = append(open, expand(roots, make([]float64, g.distances)))
		}
	}
	there := 0
	for _, l := range g.links {
		if l > 0 {
			there++
		}
	}
	for _, u := range g.used {
		if u {
			there++
		}
	}
	g.rank = there - len(open)
	if len(open) == 1 { // the one that is always there: all nodes up, all distances down
		return nil
	}
	return g.untold(open)
}

// untold lists what moves against most nodes.
func (g *pairGraph) untold(open [][]float64) *Untold {
	moves := make([]bool, g.size())
	for _, v := range open {
		var at []float64
		for i, l := range g.links {
			if l > 0 {
				at = append(at, v[i])
			}
		}
		m := Median(at)
		for i, l := range g.links {
			moves[i] = moves[i] || l > 0 && math.Abs(v[i]-m) > 1e-6
		}
		for d, u := range g.used {
			k := g.nodes + d
			moves[k] = moves[k] || u && math.Abs(v[k]+2*m) > 1e-6
		}
	}
	u := &Untold{}
	for i, m := range moves {
		switch {
		case m && i < g.nodes:
			u.Nodes = append(u.Nodes, i)
		case m:
			u.Distances = append(u.Distances, i-g.nodes)
		}
	}
	return u
}
