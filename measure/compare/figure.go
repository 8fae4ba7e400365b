package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/wire"
)

// Key distinguishes figures.
type Key = wire.MetricKey

// KeyOf is the key of a metric.
func KeyOf(m muster.Metric) Key {
	return Key{Name: m.Name, Size: m.Size, Threads: m.Threads, Distance: m.Distance}
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Threads, b.Threads), cmp.Compare(a.Size, b.Size))
}

// named reports whether a metric is meant: by its name, or by the beginning of its
// name before a dot. Empty means all.
func named(metric, want string) bool {
	return want == "" || metric == want || strings.HasPrefix(metric, want+".")
}

// scope is what a figure is of.
type scope int

const (
	ofNode  scope = iota // one node by itself
	ofPairs              // pairs of nodes
	ofWhole              // the whole cluster at once
)

// figure is a metric over the certificates of one measurement.
type figure struct {
	unit     string
	less     bool
	scope    scope
	nodes    int // certificates that have it
	median   float64
	min, max float64
	// launches are the medians of launches; over several nodes, the medians of
	// their values in each. Nil if they are not known.
	launches []float64
	// machines are the medians of single nodes.
	machines []float64
}

// figures puts together what the certificates of one measurement show: the median
// over nodes of what each of them shows, and the extremes of all.
func figures(certs []muster.Certificate, metric string) map[Key]figure {
	type one struct {
		muster.Metric
		scope scope
	}
	found := map[Key][]one{}
	take := func(s scope, list []muster.Metric) {
		for _, m := range list {
			if named(m.Name, metric) {
				found[KeyOf(m)] = append(found[KeyOf(m)], one{m, s})
			}
		}
	}
	for _, c := range certs {
		if c.Kind == muster.CertifiesNode {
			take(ofNode, c.Metrics)
			continue
		}
		take(ofWhole, c.Metrics)
		if c.Pairs != nil {
			take(ofPairs, c.Pairs.Metrics)
		}
	}
	out := map[Key]figure{}
	for k, list := range found {
		f := figure{unit: list[0].Unit, less: list[0].Less, scope: list[0].scope, nodes: len(list), min: math.Inf(1), max: math.Inf(-1)}
		var launches [][]float64
		for _, m := range list {
			f.min, f.max = min(f.min, m.Min), max(f.max, m.Max)
			f.machines = append(f.machines, m.Median)
			launches = append(launches, m.ByLaunch)
		}
		f.median = stat.Median(f.machines)
		f.launches = together(launches)
		out[k] = f
	}
	return out
}

// together is the median over nodes in each launch. All nodes were measured in the
// same launches; a node of which one failed has fewer, nobody knows which, and it
// is left out: those count that have as many as most.
func together(nodes [][]float64) []float64 {
	count := map[int]int{}
	most := 0
	for _, list := range nodes {
		n := len(list)
		count[n]++
		if c := count[n]; n > 0 && (most == 0 || c > count[most] || c == count[most] && n > most) {
			most = n
		}
	}
	if most == 0 {
		return nil
	}
	out := make([]float64, most)
	for i := range out {
		var at []float64
		for _, list := range nodes {
			if len(list) == most {
				at = append(at, list[i])
			}
		}
		out[i] = stat.Median(at)
	}
	return out
}

// logs are the natural logarithms, turned so that more is better; false if a value
// has none.
func logs(values []float64, less bool) ([]float64, bool) {
	out := make([]float64, len(values))
	for i, v := range values {
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, false
		}
		if out[i] = math.Log(v); less {
			out[i] = -out[i]
		}
	}
	return out, true
}

// fromLog is the value that has that logarithm.
func fromLog(log float64, less bool) float64 {
	if less {
		log = -log
	}
	return math.Exp(log)
}

func sortedKeys[V any](m map[Key]V) []Key {
	var keys []Key
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}
