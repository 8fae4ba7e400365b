package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/wire"
)

// Side is one of those that are compared.
type Side struct {
	// As reports what it is; its figures and conditions are filled in.
	As wire.ComparedSide
	// Certificates are of one measurement: a node's, a cluster's with those of its
	// nodes; or one for each machine of a class.
	Certificates []muster.Certificate
}

// Rules of comparing, fixed before anything is looked at.
type Rules struct {
	Level float64 // of intervals
	// False bounds the share of differences told that are chance.
	False float64
	// Worth is the smallest difference that is told: between two measurements of
	// the same machine there is always a little.
	Worth float64
	// Power is the chance with which the smallest detectable difference is seen.
	Power float64
	// Across are conditions whose difference is what is compared.
	Across []string
	// Metric narrows the metrics, and so the number of tests.
	Metric string
	// Machines counts machines and not launches as replications: of classes.
	Machines bool
}

// Usual are the rules for everybody.
func Usual() Rules { return Rules{Level: 0.95, False: 0.05, Worth: 0.01, Power: 0.9} }

// control is the procedure that keeps false findings rare over all tests.
const control = "Benjamini-Hochberg"

// row is a metric of one side against the first, with what its test is made from.
type row struct {
	wire.ComparedMetric
	first, here []float64 // replications
}

// Compare holds every other side against the first, metric by metric. A launch is
// the unit of replication: it says whether these very machines differed in these
// measurements. All tests of all sides count together.
func Compare(sides []Side, r Rules) (wire.Comparison, error) {
	out := wire.Comparison{Unit: "launch", Level: r.Level, FalseFindings: r.False, Control: control, Worth: r.Worth, Metrics: []wire.ComparedMetric{}}
	if r.Machines {
		out.Unit = "machine"
	}
	groups := make([][]muster.Certificate, len(sides))
	sides = slices.Clone(sides)
	for i := range sides {
		sides[i].Certificates = slices.Clone(sides[i].Certificates)
		groups[i] = sides[i].Certificates
	}
	levelled(groups...)
	var first map[Key]figure
	var rows []row
	for i, s := range sides {
		found := figures(s.Certificates, r.Metric)
		as := s.describe()
		if i == 0 {
			first = found
			out.Sides = append(out.Sides, as)
			continue
		}
		as.Differ = concerning(differences(sides[0].Certificates, s.Certificates, r.Across), first, found)
		for _, k := range sortedKeys(found) {
			a, ok := first[k]
			if !ok {
				as.Missing++
				continue
			}
			m, err := r.metric(k, a, found[k], as.Differ)
			if err != nil {
				return out, err
			}
			m.Side = i
			rows = append(rows, m)
		}
		for k := range first {
			if _, ok := found[k]; !ok {
				as.Missing++
			}
		}
		out.Sides = append(out.Sides, as)
	}
	if err := r.decide(&out, rows); err != nil {
		return out, err
	}
	for _, m := range rows {
		out.Metrics = append(out.Metrics, m.ComparedMetric)
	}
	return out, nil
}

// concerning leaves out differences that change none of the figures that both have.
func concerning(list []wire.Difference, first, here map[Key]figure) []wire.Difference {
	all := conditions()
	return slices.DeleteFunc(list, func(d wire.Difference) bool {
		i := slices.IndexFunc(all, func(c condition) bool { return c.name == d.Condition })
		for k, f := range here {
			if _, both := first[k]; both && all[i].changes(k.Name, f.scope) {
				return false
			}
		}
		return true
	})
}

// describe fills in what certificates say of a side.
func (s Side) describe() wire.ComparedSide {
	as := s.As
	machines := map[muster.MachineID]bool{}
	as.Certified = len(s.Certificates) > 0
	for _, c := range s.Certificates {
		as.Certified = as.Certified && c.Certified
		for _, v := range c.Caveats {
			if !slices.Contains(as.Caveats, v.Code) {
				as.Caveats = append(as.Caveats, v.Code)
			}
		}
		if c.Made.After(as.Made) {
			as.Made = c.Made
		}
		if c.Kind == muster.CertifiesNode {
			machines[c.Machine] = true
		}
	}
	as.Nodes = len(machines)
	for _, c := range conditions() {
		v := c.value(s.Certificates)
		if strings.Contains(v, several) {
			continue
		}
		switch c.name {
		case "image":
			as.Image = muster.ImageID(v)
		case "class":
			as.Class = v
		}
	}
	return as
}

// replications are what ranks are made of.
func (r Rules) replications(f figure) []float64 {
	if r.Machines {
		return f.machines
	}
	return f.launches
}

func shown(f figure, n int) wire.ComparedFigure {
	return wire.ComparedFigure{Median: f.median, Min: f.min, Max: f.max, Count: n}
}

func (r Rules) metric(k Key, first, here figure, differ []wire.Difference) (row, error) {
	a, b := r.replications(first), r.replications(here)
	m := row{wire.ComparedMetric{
		MetricKey: k, Unit: first.unit, Less: first.less, First: shown(first, len(a)), Here: shown(here, len(b)), Verdict: wire.NotComparable,
	}, a, b}
	switch why := stopped(differ, k.Name, first.scope); {
	case why != "":
		m.Reason = why
		return m, nil
	case first.unit != here.unit:
		m.Reason = fmt.Sprintf("unit: %s, and here %s", first.unit, here.unit)
		return m, nil
	case len(a) == 0 || len(b) == 0:
		m.Reason = "no single launches are known"
		return m, nil
	}
	m.Verdict = wire.Indistinguishable
	test, err := stat.MannWhitney(a, b)
	if err != nil {
		return m, err
	}
	m.Chance = &test.P
	shift, err := stat.HodgesLehmannRatio(a, b, r.Level)
	switch {
	case errors.Is(err, stat.ErrNotPositive):
		return m, nil
	case err != nil && !errors.Is(err, stat.ErrFew):
		return m, err
	case err == nil && !math.IsInf(shift.High, 0):
		m.Interval = &muster.Interval{Low: shift.Low, High: shift.High, Level: shift.Level}
	}
	if !math.IsNaN(shift.Value) && !math.IsInf(shift.Value, 0) {
		m.Ratio = &shift.Value
	}
	return m, nil
}

// decide adjusts all chances together and gives the verdicts.
func (r Rules) decide(out *wire.Comparison, rows []row) error {
	p := make([]float64, len(rows))
	for i, m := range rows {
		p[i] = math.NaN()
		if m.Chance != nil {
			p[i] = *m.Chance
			out.Tests++
		}
	}
	adjusted, err := stat.BenjaminiHochberg(p)
	if err != nil {
		return err
	}
	seen := shifts{}
	for i := range rows {
		m := &rows[i]
		if m.Chance == nil {
			continue
		}
		m.Adjusted = &adjusted[i]
		above, worth := m.Here.Median > m.First.Median, m.Here.Median != m.First.Median
		if m.Ratio != nil {
			above, worth = *m.Ratio > 1, math.Abs(math.Log(*m.Ratio)) >= math.Log1p(r.Worth)
		}
		if adjusted[i] <= r.False && worth {
			m.Verdict = wire.Worse
			if above != m.Less {
				m.Verdict = wire.Better
			}
		}
		r.detect(m, out.Tests, seen)
	}
	return nil
}

// detect fills in how small a difference would have been seen if it were the only
// one among all.
func (r Rules) detect(m *row, tests int, seen shifts) {
	if least := 2 / choose(len(m.first)+len(m.here), len(m.here)); least*float64(tests) > r.False {
		if m.Verdict == wire.Indistinguishable {
			m.Reason = fmt.Sprintf("%d and %d replications are too few to tell one metric among %d", len(m.first), len(m.here), tests)
		}
		return
	}
	x, ok := logs(m.first, m.Less)
	y, also := logs(m.here, m.Less)
	if !ok || !also {
		return
	}
	scale, err := stat.Pooled([][]float64{x, y})
	if err != nil {
		return
	}
	if d := max(r.Worth, math.Expm1(seen.shift(len(x), len(y), 1-r.False/float64(tests), r.Power)*scale.Value)); finite(d) {
		m.Detectable = &d
	}
}

// shifts are the smallest shifts that ranks see, in scales, by how many there are.
type shifts map[[2]int]float64

// shift is that of Student's test, and 5 % more: ranks lose that where values are
// normal, and some more where these are few. A simulation in the tests checks it.
func (s shifts) shift(n, m int, level, power float64) float64 {
	if v, ok := s[[2]int{n, m}]; ok {
		return v
	}
	v, err := stat.SmallestShift(stat.Scale{Value: 1, DF: float64(n + m - 2), N: n + m}, n, 0, level, power)
	if err != nil {
		v = math.Inf(1)
	}
	// That is of a median of n against a number; in the unit of its own error it is
	// of whatever is tested.
	v /= math.Sqrt(math.Pi / (2*float64(n) + math.Pi - 2))
	v *= 1.05 * math.Sqrt(1/float64(n)+1/float64(m))
	s[[2]int{n, m}] = v
	return v
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// choose is how many ways there are to choose k of n.
func choose(n, k int) float64 {
	v := 1.0
	for i := range min(k, n-k) {
		v = v * float64(n-i) / float64(i+1)
	}
	return v
}
