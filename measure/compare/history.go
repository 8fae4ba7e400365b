package compare

import (
	"math"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/wire"
)

// Measurement is what was measured at one time: a node's certificate; a cluster's
// with those of its nodes; or those of several machines of a class.
type Measurement struct {
	At           time.Time
	Certificates []muster.Certificate
	// Name is of the certificate that tells all of it; empty if there is none.
	Name muster.CertificateID
}

// HistoryRules are fixed before anything is looked at.
type HistoryRules struct {
	// Region is the chance of regions of the next figure.
	Region float64
	// FalseChanges is the chance of a change where there was none, for each metric;
	// Shortest how many measurements there are between two changes, at least.
	FalseChanges float64
	Shortest     int
	// Outside is the chance that any metric of the newest measurement is called
	// outside wrongly, and Power that of seeing the smallest detectable loss.
	Outside, Power float64
	// Floor is the smallest spread that is believed, as a share.
	Floor float64
	// Metric narrows the metrics.
	Metric string
	// Class adds how much machines differ.
	Class bool
}

// UsualHistory are the rules for everybody.
func UsualHistory() HistoryRules {
	return HistoryRules{Region: 0.99, FalseChanges: 0.01, Shortest: 5, Outside: 0.05, Power: 0.9, Floor: 0.003}
}

// History reports how figures went over measurements. Figures of different builds of
// the probe are not compared: only those after its last change are. Reports are
// shown and not used, unless there is nothing else.
func History(list []Measurement, r HistoryRules) (wire.History, error) {
	list = ofOneLevel(list)
	slices.SortStableFunc(list, func(a, b Measurement) int { return a.At.Compare(b.At) })
	out := wire.History{
		Region: r.Region, FalseChanges: r.FalseChanges, Measurements: []wire.Measured{}, Metrics: []wire.MetricHistory{}, Events: []wire.ConditionChange{},
	}
	h := teller{rules: r, list: list, out: &out, anyCertified: slices.ContainsFunc(list, Measurement.certified)}
	for i, m := range list {
		out.Measurements = append(out.Measurements, m.describe())
		if i > 0 {
			for _, e := range changed(list[i-1], m) {
				if e.Breaks {
					h.from = i
				}
				h.events = append(h.events, i)
				out.Events = append(out.Events, e)
			}
		}
	}
	return out, h.tell()
}

func (m Measurement) certified() bool {
	return !slices.ContainsFunc(m.Certificates, func(c muster.Certificate) bool { return !c.Certified })
}

func (m Measurement) describe() wire.Measured {
	out := wire.Measured{At: m.At, Certificate: m.Name, Certified: m.certified()}
	var grades []muster.Grade
	for _, c := range m.Certificates {
		if c.Kind == muster.CertifiesNode {
			out.Nodes++
		}
		grades = append(grades, c.Verdict)
		out.Trigger, out.Level = c.Trigger, c.Level
	}
	out.Verdict = muster.Overall(grades...)
	return out
}

// changed are the conditions that are known before and after, and not the same.
func changed(before, after Measurement) []wire.ConditionChange {
	var list []wire.ConditionChange
	for _, c := range conditions() {
		a, b := c.value(before.Certificates), c.value(after.Certificates)
		if a != b && a != "" && b != "" {
			list = append(list, wire.ConditionChange{At: after.At, Condition: c.name, From: a, To: b, Breaks: c.name == "probe"})
		}
	}
	return list
}

// teller goes through the metrics.
type teller struct {
	rules        HistoryRules
	list         []Measurement
	from         int // the first measurement with the present probe
	anyCertified bool
	events       []int // the measurements of out.Events
	out          *wire.History
}

// track is a metric with what is used of it.
type track struct {
	wire.MetricHistory
	used   []float64 // logs, or the figures themselves where one is zero
	at     []int     // their measurements
	onLogs bool
	since  int // the first of used since the last change
	p      float64
}

func (h *teller) tell() error {
	tracks := h.tracks()
	tests := 0
	p := make([]float64, len(tracks))
	for i := range tracks {
		t := &tracks[i]
		if err := t.change(h); err != nil {
			return err
		}
		if err := t.expect(h); err != nil {
			return err
		}
		if p[i] = t.p; !math.IsNaN(t.p) {
			tests++
		}
	}
	adjusted, err := stat.Holm(p)
	if err != nil {
		return err
	}
	seen := map[stat.Scale]float64{}
	for i := range tracks {
		t := &tracks[i]
		if !math.IsNaN(adjusted[i]) {
			newest := t.Points[len(t.Points)-1].Median
			outside := t.Expected != nil && (newest < t.Expected.Low || newest > t.Expected.High)
			t.Chance, t.Outside = &adjusted[i], adjusted[i] <= h.rules.Outside && outside
			t.see(h.rules, tests, seen)
		}
	}
	moved(tracks, h.out.Events, h.events)
	var between map[Key]ClassFigure
	if h.rules.Class {
		between = h.between()
	}
	for _, t := range tracks {
		if f, ok := between[t.MetricKey]; ok {
			t.Between = &wire.ClassFigure{Median: f.Median, Spread: f.Spread.Value, Machines: f.Machines, Certificates: f.Certificates}
		}
		h.out.Metrics = append(h.out.Metrics, t.MetricHistory)
	}
	return nil
}

// between is what machines show under the conditions of the newest certificate.
func (h *teller) between() map[Key]ClassFigure {
	var certs []muster.Certificate
	for _, m := range h.list {
		certs = append(certs, m.Certificates...)
	}
	if len(certs) == 0 {
		return nil
	}
	return Class(certs, certs[len(certs)-1], nil)
}

// tracks collects the metrics of all measurements.
func (h *teller) tracks() []track {
	found := map[Key]*track{}
	for i, m := range h.list {
		for k, f := range figures(m.Certificates, h.rules.Metric) {
			t := found[k]
			if t == nil {
				t = &track{MetricHistory: wire.MetricHistory{MetricKey: k, Unit: f.unit, Less: f.less}, onLogs: true, p: math.NaN()}
				found[k] = t
			}
			t.Points = append(t.Points, wire.MetricPoint{Measurement: i, Median: f.median, Min: f.min, Max: f.max, Nodes: f.nodes})
		}
	}
	var list []track
	for _, k := range sortedKeys(found) {
		t := found[k]
		h.use(t)
		list = append(list, *t)
	}
	return list
}

// use picks the points that may be compared.
func (h *teller) use(t *track) {
	var values, lows, highs []float64
	for _, p := range t.Points {
		if p.Measurement < h.from || h.anyCertified && !h.list[p.Measurement].certified() {
			continue
		}
		values, lows, highs = append(values, p.Median), append(lows, p.Min), append(highs, p.Max)
		t.at = append(t.at, p.Measurement)
	}
	t.Used = len(values)
	if t.Used == 0 {
		return
	}
	t.Median, t.Min, t.Max = stat.Median(values), slices.Min(lows), slices.Max(highs)
	if t.used, t.onLogs = logs(values, false); !t.onLogs {
		t.used = values
	}
}

// value is a figure again.
func (t *track) value(v float64) float64 {
	if t.onLogs {
		return math.Exp(v)
	}
	return v
}

// change finds the places at which the level changed.
func (t *track) change(h *teller) error {
	list, err := stat.Changes(t.used, h.rules.FalseChanges, h.rules.Shortest)
	if err != nil {
		return err
	}
	for i, c := range list {
		low, high := 0, len(t.used)
		if i > 0 {
			low = list[i-1].At // which was placed before
		}
		if i+1 < len(list) {
			high = list[i+1].At
		}
		place(t.used, low, high, &list[i], h.rules.Shortest)
		c = list[i]
		at := t.at[c.At]
		t.Changes = append(t.Changes, wire.MetricChange{
			Measurement: at, At: h.list[at].At, Before: t.value(c.Before), After: t.value(c.After), Chance: c.P,
		})
		t.since = c.At
	}
	return nil
}

// place puts a change where two levels fit best, by the sum of distances from them.
// Ranks tell that there is one, and its place to about one value: the last before
// may happen to be the lowest, too, and then they say it came after.
func place(x []float64, low, high int, c *stat.Change, shortest int) {
	best, at := math.Inf(1), c.At
	for k := max(at-2, low+shortest); k <= min(at+2, high-shortest); k++ {
		cost := 0.0
		for _, part := range [][]float64{x[low:k], x[k:high]} {
			m := stat.Median(part)
			for _, v := range part {
				cost += math.Abs(v - m)
			}
		}
		if cost < best {
			best, c.At, c.Before, c.After = cost, k, stat.Median(x[low:k]), stat.Median(x[k:high])
		}
	}
}

// fewest earlier figures from which the newest is expected.
const fewestBefore = 4

// expect says where the newest and the next figure are expected.
func (t *track) expect(h *teller) error {
	now := t.used[min(t.since, len(t.used)):]
	if len(now) < fewestBefore {
		return nil
	}
	region := func(before []float64) (stat.Region, *muster.Interval, error) {
		r, err := stat.PredictionRegion(before, h.rules.Region, t.floor(h.rules, before))
		if err != nil {
			return r, nil, err
		}
		v := &muster.Interval{Low: t.value(r.Low), High: t.value(r.High), Level: r.Level}
		if !finite(v.Low) || !finite(v.High) {
			return r, nil, nil
		}
		return r, v, nil
	}
	var err error
	if _, t.Next, err = region(now); err != nil {
		return err
	}
	newest := len(now) - 1
	if newest < fewestBefore || t.at[len(t.at)-1] != len(h.list)-1 {
		return nil // the newest measurement has no such figure
	}
	r, expected, err := region(now[:newest])
	if err != nil {
		return err
	}
	t.Expected = expected
	p, err := stat.Against(now[newest], r.Centre, r.Scale, t.floor(h.rules, now))
	if err != nil {
		return err
	}
	t.p = p.P
	return nil
}

// floor is the smallest spread that is believed, in the unit of the values.
func (t *track) floor(r HistoryRules, values []float64) float64 {
	if t.onLogs {
		return r.Floor
	}
	return r.Floor * math.Abs(stat.Median(values))
}

// see says how small a loss the newest would have shown. Shifts in scales, which
// take a while to compute, are kept in seen.
func (t *track) see(r HistoryRules, tests int, seen map[stat.Scale]float64) {
	before := t.used[t.since : len(t.used)-1]
	if !t.onLogs {
		return
	}
	scale, err := stat.ScaleOf(before)
	if err != nil {
		return
	}
	scale.Value = max(scale.Value, r.Floor)
	one := stat.Scale{Value: 1, DF: scale.DF, N: scale.N}
	shift, ok := seen[one]
	if !ok {
		if shift, err = stat.SmallestShift(one, 1, len(before), max(r.Region, 1-r.Outside/float64(tests)), r.Power); err != nil {
			shift = math.Inf(1)
		}
		seen[one] = shift
	}
	if d := -math.Expm1(-shift * scale.Value); d < 0.99 {
		t.Detectable = &d
	}
}

// moved reports which metrics changed at the same time, and which conditions.
// The place of a small change is known within about one measurement.
func moved(tracks []track, events []wire.ConditionChange, at []int) {
	near := func(a, b int) bool { return a-b <= 1 && b-a <= 1 }
	for i := range tracks {
		t := &tracks[i]
		for j := range t.Changes {
			c := &t.Changes[j]
			for k, o := range tracks {
				if k != i && slices.ContainsFunc(o.Changes, func(x wire.MetricChange) bool { return near(x.Measurement, c.Measurement) }) {
					c.With = append(c.With, o.MetricKey)
				}
			}
			for k, e := range events {
				if near(at[k], c.Measurement) {
					c.Events = append(c.Events, e)
				}
			}
		}
		if !t.Outside {
			continue
		}
		for k, o := range tracks {
			if k != i && o.Outside {
				t.With = append(t.With, o.MetricKey)
			}
		}
	}
}
