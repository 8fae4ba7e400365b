package stat

import (
	"fmt"
	"math"
)

// Pair is what was measured between two nodes: a bandwidth, for example, the
// median over launches. A value that is given twice counts twice.
type Pair struct {
	// A and B number two different nodes from 0; their order does not matter.
	A, B int
	// Distance numbers from 0 how far apart they are: one switch, two tiers.
	Distance int
	// Value is above zero, in any unit.
	Value float64
}

// PairFit explains pairs by their nodes and their distance:
//
//	log(value of i and j) = node i + node j + distance + rest
//
// All effects are natural logs: -0.1 is about 10 % less. Only sums of them are
// seen, so one constraint is needed: the median of the nodes is 0. That makes the
// ordinary node the reference, and slow nodes negative, as long as fewer than
// half of them are slow.
type PairFit struct {
	// Nodes says how much each node adds to the log of each of its pairs. A slow
	// node is a low value here. NaN for a node that is in no pair.
	Nodes []float64
	// Distances is the log of the value of two ordinary nodes at each distance; its
	// exponential is in the unit of the values. A slow tier is a low value here,
	// against what it was before, or against the other tiers. NaN if there was no pair.
	Distances []float64
	// Residuals is the rest of each pair, in the order of the pairs. A slow link is
	// a low value here, many scales from 0.
	Residuals []float64
	// Weights says how much each pair was believed, from 1 to nearly 0.
	Weights []float64
	// Links counts the pairs of each node. A slow node of one or two pairs cannot be
	// told from slow links.
	Links []int
	// Scale is the robust standard deviation of the rest of one pair, from the median
	// of the residuals' sizes and the share of it that the effects took. For all pairs
	// of four nodes it is a third too large on average.
	Scale float64
	// DF is how many different pairs there are beyond what the effects take.
	DF int

	graph *pairGraph
}

// FitPairs fits nodes and distances, numbered from 0, to any choice of pairs,
// robustly: a link that is wrong by any factor does not pull its nodes along as
// long as it is one of few of each.
//
// It starts from Huber's weights, whose solution is unique, and goes on with
// Tukey's, which leave outliers out, at a fixed scale (an MM-estimate; Maronna,
// Martin and Yohai (2006), Robust statistics, 5.5). Each step is a sparse least
// squares problem solved by conjugate gradients: thousands of nodes take well
// under a second.
//
// Groups of nodes with no pair between them are compared through the distances that
// they share. *[Untold] where pairs leave more open than the one constraint, ErrFew where there
// are not more different pairs than effects (three nodes and below), ErrRange for
// numbers outside of the nodes and distances, ErrNotPositive, ErrNotFinite.
func FitPairs(nodes, distances int, pairs []Pair) (*PairFit, error) {
	g, err := newPairGraph(nodes, distances, pairs)
	if err != nil {
		return nil, err
	}
	f := &PairFit{Links: g.links, DF: g.different - g.rank, graph: g}
	if f.DF < 1 {
		return nil, fmt.Errorf("%w: %d different pairs for %d effects leave nothing to tell a slow link from a slow node: measure more pairs", ErrFew, g.different, g.rank)
	}
	f.fit(pairs)
	return f, nil
}

func newPairGraph(nodes, distances int, pairs []Pair) (*pairGraph, error) {
	g := &pairGraph{nodes: nodes, distances: distances, links: make([]int, max(nodes, 0)), used: make([]bool, max(distances, 0))}
	seen := map[[2]int]bool{}
	for i, p := range pairs {
		switch {
		case p.A < 0 || p.A >= nodes || p.B < 0 || p.B >= nodes || p.A == p.B:
			return nil, fmt.Errorf("%w: pairs[%d] is of nodes %d and %d: two different ones of 0 to %d are meant", ErrRange, i, p.A, p.B, nodes-1)
		case p.Distance < 0 || p.Distance >= distances:
			return nil, fmt.Errorf("%w: pairs[%d] has distance %d: 0 to %d is meant", ErrRange, i, p.Distance, distances-1)
		case !(math.Abs(p.Value) <= largest):
			return nil, fmt.Errorf("%w: pairs[%d] is %v: leave out what was not measured", ErrNotFinite, i, p.Value)
		case p.Value <= 0:
			return nil, fmt.Errorf("%w: pairs[%d] is %v, and its log is needed", ErrNotPositive, i, p.Value)
		}
		g.ends = append(g.ends, [3]int{p.A, p.B, nodes + p.Distance})
		g.links[p.A]++
		g.links[p.B]++
		g.used[p.Distance] = true
		seen[[2]int{min(p.A, p.B), max(p.A, p.B)}] = true
	}
	g.different = len(seen)
	if len(pairs) == 0 {
		return nil, few("the list of pairs", 0, 6)
	}
	return g, g.identify()
}

// NodeError is the standard error of a node's effect against the mean of all,
// from the scale of the rest and the pairs that were believed: which differences of
// nodes chance alone makes. NaN for a node in no pair.
func (f *PairFit) NodeError(node int) float64 {
	if node < 0 || node >= len(f.Nodes) || f.Links[node] == 0 {
		return math.NaN()
	}
	there := 0.0
	for _, n := range f.Links {
		if n > 0 {
			there++
		}
	}
	// The variance of the contrast c is c' (X'WX)^-1 c.
	c := make([]float64, f.graph.size())
	for i, n := range f.Links {
		if n > 0 {
			c[i] = -1 / there
		}
	}
	c[node]++
	v := f.graph.solve(f.Weights, c)
	sum := 0.0
	for i := range c {
		sum += c[i] * v[i]
	}
	return f.Scale * math.Sqrt(max(sum, 0))
}
