package analysis

import (
	"fmt"
	"math"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// Misplaced is the finding that a node measures as one that stands elsewhere.
const Misplaced = muster.FindingMisplaced

// Standing is what measurements say of where a node stands.
type Standing struct {
	Node int
	// Registered is what it stands in, and Measures what it measures as: the same, where that is confirmed.
	Registered, Measures string
	Metric               string
	// Near is its figure with nodes of Measures, and Far with the others, in the unit of the metric.
	Near, Far float64
}

// worthTelling is by how much pairs within a stand must be better than others, as a ratio, before the two can be
// told apart.
const worthTelling = 1.3

// Standings hold what was measured between nodes against where they stand. A node is confirmed, or misplaced, by
// a figure in which pairs of one leaf are clearly apart from other pairs: if it is as near to all measured nodes
// of one stand as nodes of one stand are, and as far from all others as others are. Those of which nothing can
// be said are left out.
func Standings(nodes []Node, pairs []muster.PairFigure) []Standing {
	index := map[string]int{}
	for i, n := range nodes {
		index[n.Name] = i
	}
	type key struct {
		metric string
		size   int64
	}
	tables := map[key]*pairTable{}
	var keys []key
	for _, p := range pairs {
		a, okA := index[p.From]
		b, okB := index[p.To]
		if p.Metric != "pair.latency" && p.Metric != "pair.bandwidth" || !okA || !okB || a == b || !(p.Value > 0) || nodes[a].Place.Path == "" || nodes[b].Place.Path == "" {
			continue
		}
		k := key{p.Metric, p.Size}
		if tables[k] == nil {
			tables[k] = &pairTable{nodes: nodes, metric: p.Metric, value: map[Pair]float64{}}
			keys = append(keys, k)
		}
		tables[k].value[pairOf(a, b)] = p.Value
	}
	slices.SortFunc(keys, func(a, b key) int {
		return slices.Compare([]string{a.metric, fmt.Sprint(a.size)}, []string{b.metric, fmt.Sprint(b.size)})
	})
	var out []Standing
	for i := range nodes {
		var said []Standing
		for _, k := range keys {
			if s, ok := tables[k].stands(i); ok {
				said = append(said, s)
			}
		}
		// Figures that say different things say nothing.
		if len(said) > 0 && !slices.ContainsFunc(said, func(s Standing) bool { return s.Measures != said[0].Measures }) {
			out = append(out, said[0])
		}
	}
	return out
}

// pairTable is one figure of pairs.
type pairTable struct {
	nodes  []Node
	metric string
	value  map[Pair]float64
}

// good is the value of a pair so that more is better, and sums are of ratios.
func (t *pairTable) good(v float64) float64 {
	if t.metric == "pair.latency" {
		return -math.Log(v)
	}
	return math.Log(v)
}

// stands is where a node measures to stand.
func (t *pairTable) stands(i int) (Standing, bool) {
	var inside, across []float64 // pairs without this node
	with := map[string][]float64{}
	for p, v := range t.value {
		a, b := t.nodes[p.A].Place, t.nodes[p.B].Place
		switch {
		case p.A == i:
			with[b.Path] = append(with[b.Path], t.good(v))
		case p.B == i:
			with[a.Path] = append(with[a.Path], t.good(v))
		case a.Path == b.Path:
			inside = append(inside, t.good(v))
		default:
			across = append(across, t.good(v))
		}
	}
	if len(inside) == 0 || len(across) == 0 {
		return Standing{}, false
	}
	near, far := stat.Median(inside), stat.Median(across)
	if near-far < math.Log(worthTelling) {
		return Standing{}, false
	}
	middle := (near + far) / 2
	at, others := "", []float64{}
	for path, list := range with {
		lowest, highest := slices.Min(list), slices.Max(list)
		switch {
		case lowest > middle && at == "":
			at = path
		case highest < middle:
			others = append(others, list...)
		default:
			return Standing{}, false // near to some of them, or to two stands
		}
	}
	if at == "" || len(others) == 0 {
		return Standing{}, false
	}
	value := func(list []float64) float64 {
		v := stat.Median(list)
		if t.metric == "pair.latency" {
			v = -v
		}
		return math.Exp(v)
	}
	return Standing{Node: i, Registered: t.nodes[i].Place.inner(), Measures: Place{Path: at}.inner(), Metric: t.metric, Near: value(with[at]), Far: value(others)}, true
}

// Text says it in words.
func (s Standing) Text(name string) string {
	what := fmt.Sprintf("%.4g and %.4g Gb/s", 8e-9*s.Near, 8e-9*s.Far)
	if s.Metric == "pair.latency" {
		what = fmt.Sprintf("%.4g and %.4g us", 1e6*s.Near, 1e6*s.Far)
	}
	return fmt.Sprintf("%s is registered on %s and measures as %s (%s with nodes there and elsewhere: %s)", name, s.Registered, s.Measures, s.Metric, what)
}

// MisplacedFindings tell of nodes that measure as if they stood elsewhere.
func MisplacedFindings(nodes []Node, pairs []muster.PairFigure) []muster.Finding {
	var list []muster.Finding
	for _, s := range Standings(nodes, pairs) {
		if s.Measures == s.Registered {
			continue
		}
		n := nodes[s.Node].Name
		list = append(list, muster.Finding{
			Code: Misplaced, Node: n, Metric: s.Metric, Text: s.Text(n), Condition: "place",
			Cause:  "the description of the site, or the cabling, is wrong",
			Values: []muster.FindingValue{{Value: "registered on " + s.Registered, Nodes: n}, {Value: "measures as " + s.Measures, Nodes: n}},
		})
	}
	return list
}
