package analysis

import (
	"cmp"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// Sweeps reports whether a mode measures over a range.
func (m Mode) Sweeps() bool {
	switch m {
	case Sizes, Inside, Scale, Clients, Streams:
		return true
	}
	return false
}

// What differs from point to point.
const (
	overSize    = "size"
	overNodes   = "nodes"
	overClients = "clients"
	overStreams = "streams"
	overOffered = "offered"
)

// inNode is how far apart two ranks of one node are.
const inNode = "node"

// sweepKey distinguishes curves.
type sweepKey struct {
	metric, over, distance string
	size                   int64
	ranks                  int
}

// Sweeps sums up what was measured over a range: of all nodes together, and of each
// by itself what is inside of it. What comes from hosts that are none of the nodes is
// left out.
func Sweeps(nodes []Node, launches []Launch) (whole []muster.Sweep, single map[int][]muster.Sweep) {
	at := map[string]int{}
	for i, n := range nodes {
		at[n.Name] = i
	}
	all, each := sweepSet{}, map[int]sweepSet{}
	for i, l := range launches {
		if !l.Mode.Sweeps() {
			continue
		}
		hosts := l.hosts()
		for _, s := range l.Samples {
			k, x, ok := placeOf(l, hosts, nodes, at, s)
			if !ok {
				continue
			}
			all.add(i, k, x, s)
			if l.Mode == Inside {
				node := at[s.Host]
				if each[node] == nil {
					each[node] = sweepSet{}
				}
				each[node].add(i, k, x, s)
			}
		}
	}
	single = map[int][]muster.Sweep{}
	for node, set := range each {
		single[node] = set.list()
	}
	return all.list(), single
}

// hosts counts the hosts of a launch.
func (l Launch) hosts() int {
	seen := map[string]bool{}
	for _, r := range l.Ranks {
		seen[r.Host] = true
	}
	return len(seen)
}

// placeOf finds the curve of a sample, and its place on it.
func placeOf(l Launch, hosts int, nodes []Node, at map[string]int, s Sample) (k sweepKey, x float64, ok bool) {
	a, known := at[s.Host]
	if s.Host != "" && !known {
		return k, 0, false
	}
	b, known := at[s.Peer]
	if s.Peer != "" && !known {
		return k, 0, false
	}
	k = sweepKey{metric: s.Metric, size: s.Size}
	if s.Peer != "" && l.Mode != Scale {
		k.distance = string(Apart(nodes[a].Place, nodes[b].Place))
	}
	switch l.Mode {
	case Sizes, Inside:
		k.over, k.size, x = overSize, 0, float64(s.Size)
	case Scale:
		k.over, x, k.ranks = overNodes, float64(hosts), len(l.Ranks)/max(1, hosts)
		if s.Peer != "" && s.Peer == s.Host {
			k.distance = inNode
		}
	case Clients:
		k.over, x, k.ranks = overClients, float64(len(l.Ranks)), len(l.Ranks)/max(1, hosts)
	case Streams:
		k.over, x = overStreams, float64(s.Streams)
		if s.Offered > 0 {
			k.over, x = overOffered, s.Offered
		}
	}
	return k, x, x > 0
}

// sweepSet gathers samples: by curve, place and launch.
type sweepSet map[sweepKey]map[float64]*sweepPoint

type sweepPoint struct {
	unit     string
	launches map[int][]float64
	means    []float64
	min, max float64
	samples  int
}

func (set sweepSet) add(launch int, k sweepKey, x float64, s Sample) {
	if set[k] == nil {
		set[k] = map[float64]*sweepPoint{}
	}
	p := set[k][x]
	if p == nil {
		p = &sweepPoint{unit: s.Unit, launches: map[int][]float64{}, min: s.Min, max: s.Max}
		set[k][x] = p
	}
	p.launches[launch] = append(p.launches[launch], s.Value)
	p.means = append(p.means, s.Mean)
	p.min, p.max = min(p.min, s.Min), max(p.max, s.Max)
	p.samples += s.N
}

// list is everything in a fixed order.
func (set sweepSet) list() []muster.Sweep {
	var out []muster.Sweep
	for k, points := range set {
		s := muster.Sweep{Metric: k.metric, Over: k.over, Size: k.size, Ranks: k.ranks, Distance: k.distance}
		for x, p := range points {
			s.Unit, s.Less = p.unit, LessIsBetter(p.unit)
			var medians []float64
			for _, values := range p.launches {
				medians = append(medians, stat.Median(values))
			}
			mean := 0.0
			for _, v := range p.means {
				mean += v / float64(len(p.means))
			}
			s.Points = append(s.Points, muster.SweepPoint{
				At: x, Launches: len(p.launches), Samples: p.samples,
				Median: stat.Median(medians), Mean: min(max(mean, p.min), p.max), Min: p.min, Max: p.max,
			})
		}
		slices.SortFunc(s.Points, func(a, b muster.SweepPoint) int { return cmp.Compare(a.At, b.At) })
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b muster.Sweep) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Over, b.Over), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Distance, b.Distance))
	})
	return out
}
