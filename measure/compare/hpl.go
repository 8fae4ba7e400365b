package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/wire"
)

const (
	// hplWorth is the smallest change of HPL that is told, as a share.
	hplWorth = 0.05
	// causeWorth is the smallest change of a figure that may be its cause, as a ratio.
	causeWorth = 1.1
)

// HPL reports how results of HPL went, and which figures of the measurements around a change
// changed with it. Nil: there are no results.
func HPL(results []muster.HPLResult, list []Measurement) *wire.HPLHistory {
	if len(results) == 0 {
		return nil
	}
	results, list = slices.Clone(results), slices.Clone(list)
	slices.SortStableFunc(results, func(a, b muster.HPLResult) int { return a.Made.Compare(b.Made) })
	slices.SortStableFunc(list, func(a, b Measurement) int { return a.At.Compare(b.At) })
	out := &wire.HPLHistory{Changes: []wire.HPLChange{}, Min: math.Inf(1)}
	var medians []float64
	type alike struct {
		cluster      muster.ClusterID
		nodes, cores int
	}
	last := map[alike]int{}
	for i, r := range results {
		out.Runs = append(out.Runs, wire.HPLPoint{At: r.Made, Result: r.ID, Rate: r.Rate.Median, Min: r.Rate.Min, Max: r.Rate.Max, Launches: r.Rate.Launches, Nodes: len(r.Nodes), Cores: r.Cores, N: r.Setting.N})
		medians = append(medians, r.Rate.Median)
		out.Min, out.Max = min(out.Min, r.Rate.Min), max(out.Max, r.Rate.Max)
		k := alike{r.Cluster, len(r.Nodes), r.Cores}
		from, ok := last[k]
		last[k] = i
		if !ok || !hplChanged(results[from].Rate, r.Rate) {
			continue
		}
		c := wire.HPLChange{From: from, To: i, Before: results[from].Rate.Median, After: r.Rate.Median}
		explain(&c, results[from], r, ofCluster(list, r.Cluster))
		out.Changes = append(out.Changes, c)
	}
	out.Median = stat.Median(medians)
	return out
}

func hplChanged(a, b muster.Metric) bool {
	apart := a.Min > b.Max || b.Min > a.Max
	return apart && a.Median > 0 && b.Median > 0 && math.Abs(math.Log(b.Median/a.Median)) >= math.Log1p(hplWorth)
}

func ofCluster(list []Measurement, id muster.ClusterID) (out []Measurement) {
	for _, m := range list {
		if len(m.Certificates) > 0 && m.Certificates[0].Cluster == id {
			out = append(out, m)
		}
	}
	return out
}

// explain fills in what changed from one run to another.
func explain(c *wire.HPLChange, a, b muster.HPLResult, list []Measurement) {
	as := func(r muster.HPLResult) Measurement {
		return Measurement{At: r.Made, Certificates: []muster.Certificate{{Kind: muster.CertifiesCluster, Class: r.Class, Conditions: r.Conditions}}}
	}
	c.Conditions = append(changed(as(a), as(b)), loadChanged(a, b)...)
	before, after, ok := around(a, b, list)
	if !ok {
		c.Unexplained = "nothing was measured on both sides of it: measure after each change (muster certificate run)"
		return
	}
	c.MeasuredBefore, c.MeasuredAfter = &before.At, &after.At
	for _, e := range changed(before, after) {
		if !slices.ContainsFunc(c.Conditions, func(o wire.ConditionChange) bool { return o.Condition == e.Condition }) {
			c.Conditions = append(c.Conditions, e)
		}
	}
	worse := c.After < c.Before
	for _, cause := range causes(before.Certificates, after.Certificates, worse) {
		ratio := cause.After / cause.Before
		if cause.Less {
			ratio = 1 / ratio
		}
		switch { // above one is better
		case worse && ratio <= 1/causeWorth, !worse && ratio >= causeWorth:
			c.Causes = append(c.Causes, cause)
		default:
			c.Unmoved = append(c.Unmoved, cause)
		}
	}
	// A bandwidth and the time that follows from it are as strong as each other, but for rounding.
	strength := func(v wire.HPLCause) float64 { return math.Round(1e9 * math.Abs(math.Log(v.After/v.Before))) }
	slices.SortStableFunc(c.Causes, func(a, b wire.HPLCause) int { return cmp.Compare(strength(b), strength(a)) })
}

// around are the measurements nearest to two runs of HPL: the last until the end of the first, or
// else the first after it; and the one nearest to the second run that is after the first.
func around(a, b muster.HPLResult, list []Measurement) (before, after Measurement, ok bool) {
	began := cmp.Or(b.Began, b.Made)
	first, second := -1, -1
	for i, m := range list {
		if !m.At.After(a.Made) {
			first = i
			continue
		}
		away := func(m Measurement) time.Duration { return m.At.Sub(began).Abs() }
		if second < 0 || away(m) <= away(list[second]) {
			second = i
		}
	}
	if first < 0 && second > 0 {
		first = 0
	}
	if first < 0 || second < 0 || first == second {
		return before, after, false
	}
	return list[first], list[second], true
}

// loadChanged are the caveats of one run that the other does not have: others were busy.
func loadChanged(a, b muster.HPLResult) (list []wire.ConditionChange) {
	text := func(r muster.HPLResult, code string) string {
		if slices.ContainsFunc(r.Caveats, func(c muster.Caveat) bool { return c.Code == code }) {
			return "yes"
		}
		return "no"
	}
	for _, code := range []string{muster.CaveatDisturbed, muster.CaveatBusy} {
		if x, y := text(a, code), text(b, code); x != y {
			list = append(list, wire.ConditionChange{At: b.Made, Condition: code, From: x, To: y})
		}
	}
	if a.Setting != b.Setting {
		x, y := a.Setting, b.Setting
		list = append(list, wire.ConditionChange{At: b.Made, Condition: "setting", From: settingText(x), To: settingText(y)})
	}
	return list
}

// causes are the figures that HPL depends on, of the worst pair or node: after, if HPL became
// worse, and before, if it became better.
func causes(before, after []muster.Certificate, worse bool) (list []wire.HPLCause) {
	a, b := pairsOf(before), pairsOf(after)
	derived := deriveLatencies(a, b)
	large := map[string]int64{}
	for p := range b {
		if _, both := a[p]; both {
			large[p.metric] = max(large[p.metric], p.size)
		}
	}
	for _, want := range []struct {
		what, metric string
		size         int64
		less         bool
	}{
		{"largest latency", "pair.latency", large["pair.latency"], true},
		{"lowest bandwidth", "pair.bandwidth", large["pair.bandwidth"], false},
		{"largest latency", "pair.latency", 8, true},
	} {
		c := wire.HPLCause{What: want.what + " of " + thousands(want.size) + " B", MetricKey: Key{Name: want.metric, Size: want.size}, Less: want.less, Unit: "s"}
		if !want.less {
			c.Unit = "B/s"
		}
		c.Derived = derived && want.metric == "pair.latency" && want.size == largeMessage
		found := false
		for p, y := range b {
			x, ok := a[p]
			if !ok || p.metric != want.metric || p.size != want.size || !(x > 0) || !(y > 0) {
				continue
			}
			at, worst := y, c.After
			if !worse {
				at, worst = x, c.Before
			}
			if !found || at != worst && (at > worst) == want.less || at == worst && (p.from < c.From || p.from == c.From && p.to < c.To) {
				c.From, c.To, c.Before, c.After, found = p.from, p.to, x, y, true
			}
		}
		if found && !slices.ContainsFunc(list, func(o wire.HPLCause) bool { return o.MetricKey == c.MetricKey }) {
			list = append(list, c)
		}
	}
	list = append(list, largeMessages(before, after)...)
	x, y := figures(before, ""), figures(after, "")
	for _, k := range sortedKeys(y) {
		what := map[string]string{"stream.triad": "memory", "dgemm": "core", "noise.share": "other load"}[k.Name]
		f, ok := x[k]
		if what == "" || !ok || y[k].scope != ofNode {
			continue
		}
		worst := slices.Min[[]float64]
		if y[k].less {
			worst = slices.Max[[]float64]
		}
		c := wire.HPLCause{What: what, MetricKey: k, Unit: y[k].unit, Less: y[k].less, Before: worst(f.machines), After: worst(y[k].machines)}
		if c.Before > 0 && c.After > 0 {
			list = append(list, c)
		}
	}
	return list
}

// largeMessage is the size of which latencies are told apart from those of the smallest, in bytes.
const largeMessage = 2_000_000

// largeMessages are the largest latencies of large messages, where both were measured over ranges:
// full certificates have them, of all pairs and repetitions together.
func largeMessages(before, after []muster.Certificate) (list []wire.HPLCause) {
	largest := func(certs []muster.Certificate, metric string) (most float64) {
		for _, c := range certs {
			for _, s := range c.Sweeps {
				for _, p := range s.Points {
					if c.Kind == muster.CertifiesCluster && s.Metric == metric && (s.Size == largeMessage || s.Over == "size" && p.At == largeMessage) {
						most = max(most, p.Max)
					}
				}
			}
		}
		return most
	}
	for _, metric := range []string{"size.latency", "scale.pingpong.latency", "scale.random.latency"} {
		c := wire.HPLCause{What: "largest latency of " + thousands(largeMessage) + " B", MetricKey: Key{Name: metric, Size: largeMessage}, Unit: "s", Less: true,
			Before: largest(before, metric), After: largest(after, metric)}
		if c.Before > 0 && c.After > 0 && finite(c.Before) && finite(c.After) {
			list = append(list, c)
		}
	}
	return list
}

// deriveLatencies adds the latency of large messages of each pair, where nobody measured it: their
// size by the bandwidth. It reports whether it did.
func deriveLatencies(sides ...map[onePair]float64) bool {
	for _, side := range sides {
		for p := range side {
			if p.metric == "pair.latency" && p.size == largeMessage {
				return false
			}
		}
	}
	for _, side := range sides {
		latencies := map[onePair]float64{}
		for p, bandwidth := range side {
			if p.metric == "pair.bandwidth" && p.size == largeMessage && bandwidth > 0 {
				latencies[onePair{"pair.latency", largeMessage, p.from, p.to}] = largeMessage / bandwidth
			}
		}
		maps.Copy(side, latencies)
	}
	return true
}

// onePair is a figure between two nodes.
type onePair struct {
	metric   string
	size     int64
	from, to string
}

func pairsOf(certs []muster.Certificate) map[onePair]float64 {
	out := map[onePair]float64{}
	for _, c := range certs {
		if c.Pairs == nil {
			continue
		}
		for _, f := range c.Pairs.Figures {
			out[onePair{f.Metric, f.Size, f.From, f.To}] = f.Value
		}
	}
	return out
}

func settingText(s muster.HPLSetting) string {
	return fmt.Sprintf("N %d, NB %d, %dx%d, %d x %d a node", s.N, s.NB, s.P, s.Q, s.PerNode, s.Threads)
}

// thousands writes a number with commas.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
