package analysis

import (
	"math"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// Rules say when something is found. They are fixed before anything is measured,
// and are part of the certificate.
type Rules struct {
	// Launches are how many were planned, and how many must have succeeded.
	Launches stat.Launches
	// Level is that of the intervals.
	Level float64
	// Steady is the half-width of an interval, as a share, above which a figure is
	// unstable.
	Steady float64
	// Worth is the smallest deficit that is told, as a share of the figure: less
	// than that nobody notices, however sure it is.
	Worth float64
	// Floor is the smallest spread between machines that is believed.
	Floor float64
	// Suspicion is the share of suspects that may be innocent: they are measured
	// again. Condemn is the chance that a measurement condemns anybody wrongly.
	Suspicion, Condemn float64
	// Power is the chance with which the smallest detectable defect is seen.
	Power float64
}

// NodeRules are those for figures of single nodes.
func NodeRules(level muster.Validation) Rules {
	n := Launches(level)
	return Rules{
		Launches: stat.Launches{Min: min(n, 6), Max: n}, Level: 0.95, Steady: 0.02, Worth: 0.03, Floor: 0.003,
		Suspicion: 0.05, Condemn: 0.01, Power: 0.9,
	}
}

// Figure is what was measured of one thing on several nodes.
type Figure struct {
	Name, Unit string
	Size       int64 // bytes; 0 where it means nothing
	Threads    int
	// Less is true where less is better.
	Less   bool
	Series []Series
	// History is what machines of this class showed before; nil if that is not known.
	History *History
}

// Series is what was measured on one node.
type Series struct {
	Node int // its number in the cluster
	// Launches are the medians in each launch that succeeded.
	Launches []float64
	// Min and Max are the extremes of all Samples samples.
	Min, Max float64
	Samples  int
}

// History is what machines of a class showed before.
type History struct {
	// Median is in the unit of the figure.
	Median float64
	// Spread is between the logarithms of machines that passed.
	Spread stat.Scale
	// Apart is that of machines that were measured together: without what all of them
	// share at a moment. Without degrees of freedom if it is not known.
	Apart stat.Scale
	// Text says what it rests on.
	Text string
}

// Judged is one figure of one node.
type Judged struct {
	Node   int
	Metric muster.Metric
	// Deficit is the share that is missing against what it was compared with;
	// negative if it is better. NaN if there was nothing to compare with.
	Deficit float64
	// P is the chance to be so far below for one that is like the others; NaN if it
	// could not be told. Adjusted is it for all tests of the measurement together.
	P, Adjusted float64
	// Shared: the others on its host lack as much, so that it is theirs together.
	Shared bool

	scale stat.Scale // of what it was compared with
	// past is what it is beside its class's history, and beside what it is beside those
	// that were measured with it; nil if that is not known.
	past, beside *comparison
}

// Judge judges everything that was measured at once: nodes by themselves, all
// together, and what is between two. Of those that are low, the share [Rules.Suspicion]
// is not, on average.
//
// These are three families, of many tests or few, and each may err for its part of that
// share: what is between two nodes need not stand out among all that nodes do alone.
func Judge(level muster.Validation, c Collected) (Results, error) {
	var out Results
	nodes, links := NodeRules(level), LinkRules(level)
	var err error
	if out.Nodes, err = nodes.compare(c.Nodes); err != nil {
		return out, err
	}
	if out.Whole, err = nodes.compare(c.Whole); err != nil {
		return out, err
	}
	var between []test
	out.Fabrics = make([]FabricJudged, len(c.Fabrics))
	for i, f := range c.Fabrics {
		if err := out.Fabrics[i].compare(links, f); err != nil {
			return out, err
		}
		between = append(between, out.Fabrics[i].verdicts(links)...)
	}
	families := slices.DeleteFunc([][]test{nodes.tests(out.Nodes), nodes.tests(out.Whole), between}, func(f []test) bool {
		return !slices.ContainsFunc(f, func(t test) bool { return !math.IsNaN(t.P) })
	})
	for _, f := range families {
		if err := decide(f, stat.BenjaminiHochberg, nodes.Suspicion/float64(len(families))); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Suspects judges figures of nodes. Who is low there is suspected: on average the
// share Rules.Suspicion of them is not, because many nodes and figures are looked
// at, and nobody is condemned before it was measured again.
func (r Rules) Suspects(figures []Figure) ([]Judged, error) {
	list, err := r.compare(figures)
	if err != nil {
		return nil, err
	}
	return list, decide(r.tests(list), stat.BenjaminiHochberg, r.Suspicion)
}

// Condemned judges figures that were measured again, of suspects beside nodes that
// are known to be good: that anybody is low who is not has the chance Rules.Condemn.
// Only the figures of nodes for which suspect is true are tests.
func (r Rules) Condemned(figures []Figure, suspect func(node int) bool) ([]Judged, error) {
	list, err := r.compare(figures)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if !suspect(list[i].Node) {
			list[i].P = math.NaN()
		}
	}
	return list, decide(r.tests(list), stat.Holm, r.Condemn)
}

// compare holds every figure of every node against its reference.
func (r Rules) compare(figures []Figure) ([]Judged, error) {
	var list []Judged
	for _, f := range figures {
		some, err := r.figure(f)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

func (r Rules) figure(f Figure) ([]Judged, error) {
	list := make([]Judged, 0, len(f.Series))
	var logs []float64 // the more the better
	for _, s := range f.Series {
		if len(s.Launches) == 0 {
			continue
		}
		sum, err := r.Launches.Judge(s.Launches, r.Level, r.Steady)
		if err != nil {
			return nil, err
		}
		m := muster.Metric{
			Name: f.Name, Unit: f.Unit, Size: f.Size, Threads: f.Threads, Less: f.Less,
			Launches: sum.N, Samples: s.Samples, Median: sum.Median, Min: s.Min, Max: s.Max, Verdict: muster.GradeUnknown,
			ByLaunch: slices.Clone(s.Launches),
		}
		if sum.Steadiness != stat.Unknown {
			m.Interval = &muster.Interval{Low: sum.Interval.Low, High: sum.Interval.High, Level: sum.Interval.Level}
		}
		if sum.Steadiness == stat.Unstable && !mayVary(f.Name) && !shown(f.Name) {
			m.Verdict = muster.GradeUnstable
		}
		list = append(list, Judged{Node: s.Node, Metric: m, Deficit: math.NaN(), P: math.NaN(), Adjusted: math.NaN()})
		logs = append(logs, f.better(sum.Median))
	}
	if shown(f.Name) || slices.ContainsFunc(logs, func(v float64) bool { return math.IsInf(v, 0) }) {
		return list, nil // nothing can be so many times as much as another
	}
	if f.History == nil {
		return list, r.peers(f, list, logs)
	}
	return list, r.history(f, list, logs)
}

// better is the logarithm of a value, turned so that more is better.
func (f Figure) better(v float64) float64 {
	if f.Less {
		return -math.Log(v)
	}
	return math.Log(v)
}

// value is what has that logarithm.
func (f Figure) value(log float64) float64 {
	if f.Less {
		return math.Exp(-log)
	}
	return math.Exp(log)
}

// history holds figures against what their class showed before, and against those
// that were measured with them: how far these are from each other at one moment is
// known, too, and what they share then is in both. A defect makes nobody faster, so
// that of two that differ too much the slower one is meant. The stronger word counts,
// for the price of having asked twice.
func (r Rules) history(f Figure, list []Judged, logs []float64) error {
	h := f.History
	centre := f.better(h.Median)
	for i := range list {
		j := &list[i]
		p, err := stat.Against(logs[i], centre, h.Spread, r.Floor)
		if err != nil {
			return err
		}
		j.past = compareWith(f, p, logs[i], muster.SourceHistory, h.Text)
		j.take(j.past)
		if len(list) < 2 || !(h.Apart.DF > 0) {
			continue
		}
		others := stat.Median(slices.Delete(slices.Clone(logs), i, i+1))
		apart := stat.Scale{Value: h.Apart.Value, DF: h.Apart.DF, N: len(list) - 1}
		if p, err = stat.Against(logs[i], others, apart, r.Floor); err != nil {
			return err
		}
		j.beside = compareWith(f, p, logs[i], muster.SourcePeers, "measured at the same time; how far apart such nodes are is from "+h.Text)
		j.P = min(1, 2*min(j.past.p, j.beside.p))
	}
	return nil
}

// fewestPeers can convict: of three each has two peers, whose spread is worth one
// degree of freedom; of two nobody knows who is slow.
const fewestPeers = 3

func (r Rules) peers(f Figure, list []Judged, logs []float64) error {
	if len(list) < fewestPeers {
		return nil
	}
	peers, err := stat.Peers(logs, stat.Scale{}, r.Floor)
	if err != nil {
		return err
	}
	// Robust peers see a culprit beside many others, and need many nodes for it. One
	// culprit among few is seen much better against all that are left without it. The
	// stronger word counts, for the price of having asked twice.
	n := float64(len(logs))
	outliers, err := stat.Outliers(logs, max(1, len(logs)/10), r.Floor)
	if err != nil {
		return err
	}
	for i, p := range peers {
		if o := outliers[i]; o < 1 { // it counts all nodes; here they are counted later
			p.P = min(p.P, o/n)
		}
		p.P = min(1, 2*p.P)
		list[i].against(f, p, logs[i], muster.SourcePeers)
	}
	return nil
}

// comparison is a figure beside what it should be.
type comparison struct {
	p, deficit float64 // as in [Judged]
	scale      stat.Scale
	reference  muster.Reference
}

func compareWith(f Figure, p stat.Peer, log float64, from muster.Source, text string) *comparison {
	c := &comparison{p: p.P / 2, deficit: -math.Expm1(log - p.Centre), scale: p.Scale, reference: muster.Reference{Value: f.value(p.Centre), Source: from, Text: text}}
	if p.Z > 0 {
		c.p = 1 - p.P/2
	}
	return c
}

// take makes a comparison the one that is told.
func (j *Judged) take(c *comparison) {
	j.scale, j.Deficit, j.P = c.scale, c.deficit, c.p
	ref := c.reference
	j.Metric.Reference = &ref
	j.Metric.Spread = &muster.Spread{Value: c.scale.Value, Source: ref.Source, Count: c.scale.N}
}

func (j *Judged) against(f Figure, p stat.Peer, log float64, from muster.Source) {
	j.take(compareWith(f, p, log, from, ""))
}

// test is a figure that is judged, with the rules for such figures.
type test struct {
	*Judged
	rules Rules
}

// tests are those of a list.
func (r Rules) tests(list []Judged) []test {
	out := make([]test, len(list))
	for i := range list {
		out[i] = test{&list[i], r}
	}
	return out
}

// decide adjusts all chances together and gives the verdicts.
func decide(tests []test, adjust func([]float64) ([]float64, error), level float64) error {
	p := make([]float64, len(tests))
	asked := 0
	for i, j := range tests {
		if p[i] = j.P; !math.IsNaN(j.P) {
			asked++
		}
	}
	adjusted, err := adjust(p)
	if err != nil {
		return err
	}
	see := seer{level: level, tests: asked, shifts: map[question]float64{}}
	for i, j := range tests {
		j.Adjusted = adjusted[i]
		m, worth := &j.Metric, j.rules.Worth
		if math.IsNaN(j.P) {
			continue
		}
		m.Detectable = see.figure(j)
		if told := j.beside; told != nil && told.p < j.past.p && told.deficit >= worth && j.Adjusted <= level {
			p := j.P
			j.take(told)
			j.P = p
		}
		switch {
		case j.Adjusted <= level && j.Deficit >= worth:
			m.Verdict = muster.GradeLow
		case m.Verdict != muster.GradeUnstable:
			m.Verdict = muster.GradePass
		}
	}
	return nil
}

// seer knows how small a defect the strictest of many tests sees.
type seer struct {
	level  float64
	tests  int
	shifts map[question]float64 // in scales
}

// question is how far a value must be off to be seen: of a scale of 1, at a level.
type question struct {
	scale stat.Scale
	level float64
}

// figure is the smallest share of a node's figure that could be missing and be seen
// with the chance Rules.Power; nil if none is.
func (s *seer) figure(j test) *float64 {
	switch {
	case j.past != nil && j.beside != nil: // asked twice
		a, b := s.smallest(j.rules, j.past.scale, s.level/2), s.smallest(j.rules, j.beside.scale, s.level/2)
		if a == nil || b != nil && *b < *a {
			return b
		}
		return a
	case j.Metric.Reference.Source == muster.SourcePeers: // a culprit alone: all others tell what is normal
		return s.smallest(j.rules, stat.Scale{Value: j.scale.Value, DF: float64(j.scale.N - 1), N: j.scale.N}, s.level/2)
	}
	return s.smallest(j.rules, j.scale, s.level)
}

// smallest does so for one scale and level.
func (s *seer) smallest(r Rules, scale stat.Scale, level float64) *float64 {
	one := question{stat.Scale{Value: 1, DF: scale.DF, N: scale.N}, level}
	shift, ok := s.shifts[one]
	if !ok {
		var err error
		if shift, err = stat.SmallestShift(one.scale, 1, scale.N, 1-2*level/float64(s.tests), r.Power); err != nil {
			shift = math.Inf(1)
		}
		s.shifts[one] = shift
	}
	d := max(r.Worth, -math.Expm1(-shift*max(scale.Value, r.Floor)))
	if d > 0.99 {
		return nil
	}
	return &d
}
