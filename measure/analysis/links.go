package analysis

import (
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// LinkRules are those for figures between two nodes, which vary more than those of
// one.
func LinkRules(level muster.Validation) Rules {
	r := NodeRules(level)
	r.Steady, r.Worth, r.Floor = 0.05, 0.05, 0.005
	return r
}

// Fabric is what was measured of one thing between nodes.
type Fabric struct {
	Name, Unit string
	Size       int64 // of a message, in bytes
	Less       bool  // of latencies
	Nodes      int   // how many the cluster has
	Links      []Link
	// History is what pairs of this class showed before, by distance.
	History map[Distance]*History
}

// Link is what was measured between two nodes.
type Link struct {
	Pair
	Distance Distance
	// Launches are the medians in each launch that measured them.
	Launches []float64
	// Which numbers the launch of each, for figures of whole distances; nil if that
	// is not known.
	Which []int
}

// FabricJudged says who is to blame. The logarithm of what was measured between
// two nodes is the sum of what each of them adds, of what their distance adds, and
// a rest: a slow node is slow with everybody, a slow tier with all that are so far
// apart, a slow link is only itself.
type FabricJudged struct {
	// Nodes are those that can be told from their partners: what two like them would
	// reach, against the others.
	Nodes []Judged
	// Links are the pairs, each against what its nodes and its distance promise.
	Links []JudgedLink
	// Tiers are the distances, against their history where there is one.
	Tiers []JudgedTier
	// Why reports why there is less than that; empty if there is not.
	Why string
	// Again are nodes that were suspects, and are judged by what they showed when they
	// were measured again.
	Again map[int]bool
}

// JudgedLink is a pair of nodes.
type JudgedLink struct {
	Pair
	Judged // Node means nothing
	// Again: it was a suspect, and this is what it showed when it was measured again.
	Again bool
}

// JudgedTier is a distance.
type JudgedTier struct {
	Distance Distance
	Judged   // Node means nothing
}

// Fabric judges one figure between nodes. All tests of it count together.
func (r Rules) Fabric(f Fabric) (FabricJudged, error) {
	var out FabricJudged
	if err := out.compare(r, f); err != nil {
		return out, err
	}
	return out, decide(out.verdicts(r), stat.BenjaminiHochberg, r.Suspicion)
}

// compare holds every pair, node and distance against its reference.
func (out *FabricJudged) compare(r Rules, f Fabric) error {
	as := Figure{Name: f.Name, Unit: f.Unit, Size: f.Size, Less: f.Less}
	pairs, tiers, err := r.links(f, as, out)
	if err != nil {
		return err
	}
	if shown(f.Name) || slices.ContainsFunc(pairs, func(p stat.Pair) bool { return !(p.Value > 0) || math.IsInf(p.Value, 0) }) {
		out.sums(f, tiers)
		return nil
	}
	return out.blame(r, f, as, pairs, tiers)
}

// links sums up what was measured of each pair. The value of a pair is turned so
// that more is better.
func (r Rules) links(f Fabric, as Figure, out *FabricJudged) (pairs []stat.Pair, tiers []Distance, err error) {
	for _, l := range f.Links {
		if len(l.Launches) == 0 {
			continue
		}
		one, err := r.figure(Figure{Name: f.Name, Unit: f.Unit, Size: f.Size, Less: f.Less, Series: []Series{{
			Launches: l.Launches, Min: slices.Min(l.Launches), Max: slices.Max(l.Launches), Samples: len(l.Launches),
		}}})
		if err != nil {
			return nil, nil, err
		}
		one[0].Metric.Distance = string(l.Distance)
		out.Links = append(out.Links, JudgedLink{Pair: l.Pair, Judged: one[0]})
		if !slices.Contains(tiers, l.Distance) {
			tiers = append(tiers, l.Distance)
		}
		pairs = append(pairs, stat.Pair{A: l.A, B: l.B, Distance: slices.Index(tiers, l.Distance), Value: math.Exp(as.better(one[0].Metric.Median))})
	}
	return pairs, tiers, nil
}

// blame tells apart what nodes, distances and links do.
func (out *FabricJudged) blame(r Rules, f Fabric, as Figure, pairs []stat.Pair, tiers []Distance) error {
	fit, err := stat.FitPairs(f.Nodes, len(tiers), pairs)
	var untold *stat.Untold
	switch {
	case errors.As(err, &untold), errors.Is(err, stat.ErrFew):
		// What is known of the class can still be held against each pair.
		out.Why = "too few pairs to tell whether a node, a link or all are slow"
		out.plainTiers(f, as, tiers)
		return out.old(r, f, as)
	case err != nil:
		return err
	}
	if err := out.nodes(r, f, as, fit); err != nil {
		return err
	}
	// A pair far out is hardly believed, so the fit is that of all others, which do
	// not know exactly what it should be. On average that widens what is normal by
	// the pairs for each degree of freedom.
	wider := math.Sqrt(float64(len(pairs)) / float64(fit.DF))
	for i := range out.Links {
		l := &out.Links[i]
		scale := stat.Scale{Value: wider * fit.Scale, DF: float64(fit.DF), N: len(pairs)}
		p, err := stat.Against(fit.Residuals[i], 0, scale, r.Floor)
		if err != nil {
			return err
		}
		log := as.better(l.Metric.Median)
		p.Centre = log - fit.Residuals[i]
		l.against(as, p, log, muster.SourcePeers)
	}
	return out.tiers(r, f, as, tiers, fit)
}

// nodes compares what two nodes like each would reach between them: twice the
// effect of one.
func (out *FabricJudged) nodes(r Rules, f Fabric, as Figure, fit *stat.PairFit) error {
	var logs []float64
	var list []Judged
	base := stat.Median(slices.DeleteFunc(slices.Clone(fit.Distances), math.IsNaN))
	for n, effect := range fit.Nodes {
		if math.IsNaN(effect) {
			continue
		}
		m := muster.Metric{Name: f.Name, Unit: f.Unit, Size: f.Size, Less: f.Less, Launches: f.launches(), Samples: fit.Links[n], Median: as.value(base + 2*effect), Verdict: muster.GradeUnknown}
		m.Min, m.Max = m.Median, m.Median
		list = append(list, Judged{Node: n, Metric: m, Deficit: math.NaN(), P: math.NaN(), Adjusted: math.NaN()})
		logs = append(logs, base+2*effect)
	}
	out.Nodes = list
	return r.peers(as, list, logs)
}

// launches are those behind the best known pair.
func (f Fabric) launches() int {
	most := 0
	for _, l := range f.Links {
		most = max(most, len(l.Launches))
	}
	return most
}

// tiers sums up distances, and compares them with their history where there is one.
func (out *FabricJudged) tiers(r Rules, f Fabric, as Figure, tiers []Distance, fit *stat.PairFit) error {
	for i, d := range tiers {
		log := fit.Distances[i]
		if math.IsNaN(log) {
			continue
		}
		t := f.tier(as, d, log, fit.Nodes)
		if h := f.History[d]; h != nil {
			p, err := stat.Against(log, as.better(h.Median), h.Spread, r.Floor)
			if err != nil {
				return err
			}
			t.against(as, p, log, muster.SourceHistory)
			t.Metric.Reference.Text = h.Text
		}
		out.Tiers = append(out.Tiers, t)
	}
	return nil
}

// tier is the figure of a distance: what two ordinary nodes would reach in each
// launch, and over all of them.
func (f Fabric) tier(as Figure, d Distance, log float64, nodes []float64) JudgedTier {
	m := muster.Metric{
		Name: f.Name, Unit: f.Unit, Size: f.Size, Less: f.Less, Distance: string(d), Launches: f.launches(), Median: as.value(log), Verdict: muster.GradeUnknown,
	}
	if list := f.byLaunch(as, d, nodes); len(list) > 0 {
		m.ByLaunch, m.Launches, m.Median = list, len(list), stat.Median(list)
	}
	m.Min, m.Max = m.Median, m.Median
	for _, v := range m.ByLaunch {
		m.Min, m.Max = min(m.Min, v), max(m.Max, v)
	}
	for _, l := range f.Links {
		if l.Distance != d {
			continue
		}
		for _, v := range l.Launches {
			m.Min, m.Max = min(m.Min, v), max(m.Max, v)
		}
		m.Samples += len(l.Launches)
	}
	m.Samples = max(m.Samples, m.Launches)
	return JudgedTier{Distance: d, Judged: Judged{Metric: m, Deficit: math.NaN(), P: math.NaN(), Adjusted: math.NaN()}}
}

// byLaunch is the figure of a distance in each launch, with what single nodes add
// taken off: in another launch others may have been paired. Nil if nobody knows
// which value is of which launch.
func (f Fabric) byLaunch(as Figure, d Distance, nodes []float64) []float64 {
	logs := map[int][]float64{}
	for _, l := range f.Links {
		if l.Distance != d || len(l.Which) != len(l.Launches) {
			continue
		}
		of := 0.0
		if nodes != nil {
			of = nodes[l.A] + nodes[l.B]
		}
		for i, v := range l.Launches {
			if log := as.better(v) - of; !math.IsNaN(log) {
				logs[l.Which[i]] = append(logs[l.Which[i]], log)
			}
		}
	}
	var list []float64
	for _, launch := range slices.Sorted(maps.Keys(logs)) {
		list = append(list, as.value(stat.Median(logs[launch])))
	}
	return list
}

// plainTiers sums up distances where nodes cannot be told from links.
func (out *FabricJudged) plainTiers(f Fabric, as Figure, tiers []Distance) {
	for _, d := range tiers {
		if list := f.byLaunch(as, d, nil); len(list) > 0 {
			out.Tiers = append(out.Tiers, f.tier(as, d, as.better(stat.Median(list)), nil))
		}
	}
}

// sums sums up distances of what has no ratios: the median of all pairs in each
// launch.
func (out *FabricJudged) sums(f Fabric, tiers []Distance) {
	for _, d := range tiers {
		launches := map[int][]float64{}
		for _, l := range f.Links {
			for i, v := range l.Launches {
				if l.Distance == d && len(l.Which) == len(l.Launches) {
					launches[l.Which[i]] = append(launches[l.Which[i]], v)
				}
			}
		}
		m := muster.Metric{Name: f.Name, Unit: f.Unit, Size: f.Size, Less: f.Less, Distance: string(d), Verdict: muster.GradeUnknown, Launches: len(launches)}
		for _, n := range slices.Sorted(maps.Keys(launches)) {
			v := launches[n]
			m.ByLaunch = append(m.ByLaunch, stat.Median(v))
			m.Samples += len(v)
			if len(m.ByLaunch) == 1 {
				m.Min, m.Max = v[0], v[0]
			}
			m.Min, m.Max = min(m.Min, slices.Min(v)), max(m.Max, slices.Max(v))
		}
		if len(m.ByLaunch) == 0 {
			continue
		}
		m.Median = stat.Median(m.ByLaunch)
		out.Tiers = append(out.Tiers, JudgedTier{Distance: d, Judged: Judged{Metric: m, Deficit: math.NaN(), P: math.NaN(), Adjusted: math.NaN()}})
	}
}

// old compares each pair with the history of its distance.
func (out *FabricJudged) old(r Rules, f Fabric, as Figure) error {
	for i := range out.Links {
		l := &out.Links[i]
		h := f.History[Distance(l.Metric.Distance)]
		if h == nil {
			continue
		}
		log := as.better(l.Metric.Median)
		p, err := stat.Against(log, as.better(h.Median), h.Spread, r.Floor)
		if err != nil {
			return err
		}
		l.against(as, p, log, muster.SourceHistory)
		l.Metric.Reference.Text = h.Text
	}
	return nil
}

// verdicts are all that is to be decided of it.
func (out *FabricJudged) verdicts(r Rules) []test {
	list := r.tests(out.Nodes)
	for i := range out.Links {
		list = append(list, test{&out.Links[i].Judged, r})
	}
	for i := range out.Tiers {
		list = append(list, test{&out.Tiers[i].Judged, r})
	}
	return list
}
