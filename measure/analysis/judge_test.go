package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/analysis"
)

// measured pretends to measure: machines differ by spread, launches by noise, and
// slow nodes lack a share of some figures.
type measured struct {
	nodes, figures int
	spread, noise  float64
	slow           map[int]float64
	slowFigures    int
	known          bool // the class has a history
	// moment is how much all nodes differ together from time to time, which is in the
	// history; now is by how much they do now: logs.
	moment, now float64
}

func (m measured) draw(r *rand.Rand, launches int) []analysis.Figure {
	var list []analysis.Figure
	for f := range m.figures {
		figure := analysis.Figure{Name: fmt.Sprint("f", f), Unit: "op/s", Less: f%3 == 2}
		if m.known {
			history := make([]float64, 60)
			for i := range history {
				history[i] = m.spread * r.NormFloat64()
			}
			apart, _ := stat.ScaleOf(history)
			for i := range history {
				history[i] += m.moment * r.NormFloat64()
			}
			s, _ := stat.ScaleOf(history)
			figure.History = &analysis.History{Median: 100 * math.Exp(stat.Median(history)), Spread: s}
			if m.moment > 0 {
				figure.History.Apart = apart
			}
		}
		for n := range m.nodes {
			level := m.spread*r.NormFloat64() + m.now
			if f < m.slowFigures {
				level += math.Log(1 - m.slow[n])
			}
			s := analysis.Series{Node: n}
			for range launches {
				v := level + m.noise*r.NormFloat64()
				if figure.Less {
					v = -v
				}
				s.Launches = append(s.Launches, 100*math.Exp(v))
			}
			figure.Series = append(figure.Series, s)
		}
		list = append(list, figure)
	}
	return list
}

// low are the nodes that something was found of.
func low(list []analysis.Judged) map[int]bool {
	nodes := map[int]bool{}
	for _, j := range list {
		if j.Metric.Verdict == muster.GradeLow {
			nodes[j.Node] = true
		}
	}
	return nodes
}

func suspects(t *testing.T, figures []analysis.Figure) map[int]bool {
	t.Helper()
	list, err := analysis.NodeRules(muster.ValidateQuick).Suspects(figures)
	if err != nil {
		t.Fatal(err)
	}
	return low(list)
}

// Where nothing is wrong hardly anybody is suspected, however many are looked at.
func TestTheInnocent(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		for _, nodes := range []int{2, 4, 8, 64} {
			r := rand.New(rand.NewPCG(uint64(nodes), 3))
			const runs = 40
			some := 0
			for range runs {
				m := measured{nodes: nodes, figures: 12, spread: 0.02, noise: 0.005, known: known}
				if len(suspects(t, m.draw(r, 6))) > 0 {
					some++
				}
			}
			// Of 40 runs with a chance of 5 % each, more than 7 are seen once in 1,000.
			if some > 7 {
				t.Errorf("%d nodes, history %v: in %d of %d runs somebody is suspected", nodes, known, some, runs)
			}
		}
	}
}

func TestTheSlow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		nodes   int
		known   bool
		missing float64
		least   float64 // share of the runs in which it must be found
		most    float64
	}{
		{2, false, 0.5, 0, 0}, // two nodes cannot convict each other
		{2, true, 0.3, 0.95, 1},
		{1, true, 0.3, 0.95, 1},
		{16, false, 0.3, 0.95, 1},
		{64, false, 0.15, 0.95, 1},
		{64, false, 0.01, 0, 0.1}, // less than is worth telling
	} {
		r := rand.New(rand.NewPCG(uint64(test.nodes), 5))
		const runs = 40
		found, others := 0, 0
		for range runs {
			m := measured{nodes: test.nodes, figures: 12, slowFigures: 4, spread: 0.02, noise: 0.005, known: test.known, slow: map[int]float64{0: test.missing}}
			nodes := suspects(t, m.draw(r, 6))
			if nodes[0] {
				found++
			}
			if delete(nodes, 0); len(nodes) > 0 {
				others++
			}
		}
		if share := float64(found) / runs; share < test.least || share > test.most {
			t.Errorf("%d nodes, history %v, %.0f %% missing: found in %.2f of the runs", test.nodes, test.known, 100*test.missing, share)
		}
		if others > 8 {
			t.Errorf("%d nodes: others are suspected in %d of %d runs", test.nodes, others, runs)
		}
	}
}

// How often a node that lacks 15 % of four figures of twelve is suspected, and how
// often somebody is where nothing is wrong, by the number of nodes. Four barely
// convict anybody.
func TestPowerOfFewNodes(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int]struct{ least, most int }{4: {0, 60}, 6: {60, 100}, 8: {90, 100}, 32: {95, 100}} {
		r := rand.New(rand.NewPCG(uint64(nodes), 5))
		wrong, found := 0, 0
		for range 100 {
			m := measured{nodes: nodes, figures: 12, slowFigures: 4, spread: 0.02, noise: 0.005}
			if len(suspects(t, m.draw(r, 6))) > 0 {
				wrong++
			}
			m.slow = map[int]float64{0: 0.15}
			if suspects(t, m.draw(r, 6))[0] {
				found++
			}
		}
		t.Logf("%d nodes: found in %d of 100 runs, false alarms in %d of 100", nodes, found, wrong)
		if found < want.least || found > want.most || wrong > 13 { // with a chance of 5 %, more is seen once in 1,000
			t.Errorf("%d nodes: found in %d, false alarms in %d", nodes, found, wrong)
		}
	}
}

// However sure it is, less than is worth telling is not told.
func TestLittleIsNotTold(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 5))
	for missing, want := range map[float64]bool{0.025: false, 0.05: true} {
		m := measured{nodes: 64, figures: 12, slowFigures: 4, spread: 0.001, noise: 0.0005, slow: map[int]float64{0: missing}}
		list, err := analysis.NodeRules(muster.ValidateQuick).Suspects(m.draw(r, 6))
		if err != nil {
			t.Fatal(err)
		}
		if list[0].Adjusted > 0.001 {
			t.Errorf("it is not sure: %+v", list[0])
		}
		if low(list)[0] != want {
			t.Errorf("%.1f %% missing is told: %v", 100*missing, !want)
		}
	}
}

// What a certificate says could have been seen is seen about so often.
func TestDetectable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	rules := analysis.NodeRules(muster.ValidateQuick)
	for _, nodes := range []int{6, 32} {
		m := measured{nodes: nodes, figures: 10, spread: 0.02, noise: 0.001}
		list, err := rules.Suspects(m.draw(r, 6))
		if err != nil {
			t.Fatal(err)
		}
		sum, n := 0.0, 0
		for _, j := range list {
			if j.Metric.Detectable == nil {
				t.Fatalf("%+v", j)
			}
			sum += *j.Metric.Detectable
			n++
		}
		m.slow, m.slowFigures = map[int]float64{3: sum / float64(n)}, 1
		found := 0
		const runs = 100
		for range runs {
			if suspects(t, m.draw(r, 6))[3] {
				found++
			}
		}
		if found < 75 {
			t.Errorf("%.3f should be seen 9 times of 10, and is seen %d times of %d", sum/float64(n), found, runs)
		}
	}
}

// The worst delay of a second is another one each second: that alone says nothing.
func TestExtremesMayVary(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]muster.Grade{"noise.max": muster.GradeUnknown, "noise.share": muster.GradeUnknown, "noise.median": muster.GradeUnstable, "dgemm": muster.GradeUnstable} {
		f := analysis.Figure{Name: name, Unit: "s", Series: []analysis.Series{{Launches: []float64{1, 2, 3, 4, 5, 6}, Min: 1, Max: 6, Samples: 6}}}
		judged, err := analysis.NodeRules(muster.ValidateQuick).Suspects([]analysis.Figure{f})
		if err != nil {
			t.Fatal(err)
		}
		if got := judged[0].Metric.Verdict; got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}

// What is most often nothing has no ratio to anything: it is shown, and nobody is
// suspected for it, with a history and without. A promise is kept or broken all the
// same.
func TestNothingIsNoFigureToCompare(t *testing.T) {
	t.Parallel()
	zeros := []float64{0, 0, 0, 0, 0, 0}
	some := []float64{0.3, 0.4, 0.5, 0.6, 0.7, 0.8}
	for name, others := range map[string][]float64{"net.udp.loss": zeros, "net.tcp.again": some, "noise.share": zeros} {
		f := analysis.Figure{Name: name, Unit: "1", Less: true}
		for n := range 8 {
			s := analysis.Series{Node: n, Launches: others, Max: 1, Samples: 6}
			if n == 3 {
				s.Launches = some
			}
			f.Series = append(f.Series, s)
		}
		for _, history := range []*analysis.History{nil, {Median: 0.01, Spread: stat.Scale{Value: 0.1, DF: 20, N: 20}}} {
			f.History = history
			judged, err := analysis.NodeRules(muster.ValidateQuick).Suspects([]analysis.Figure{f})
			if err != nil || len(judged) != 8 {
				t.Fatalf("%s: %d, %v", name, len(judged), err)
			}
			for _, j := range judged {
				if m := j.Metric; m.Verdict != muster.GradeUnknown || m.Interval == nil || m.Reference != nil || m.Launches != 6 {
					t.Errorf("%s: %+v", name, m)
				}
			}
			promises, err := analysis.ParseTargets("* " + name + " 0.1%")
			if err != nil {
				t.Fatal(err)
			}
			analysis.Refer(make([]analysis.Candidate, 8), judged, promises)
			for _, j := range judged {
				if want := slices.Equal(j.Metric.ByLaunch, zeros); (j.Metric.Verdict == muster.GradePass) != want || math.IsInf(j.Deficit, 0) {
					t.Errorf("%s: %+v", name, j)
				}
			}
		}
	}
}

func TestUnsteady(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	m := measured{nodes: 8, figures: 3, spread: 0.02, noise: 0.2}
	list, err := analysis.NodeRules(muster.ValidateQuick).Suspects(m.draw(r, 6))
	if err != nil {
		t.Fatal(err)
	}
	unsteady := 0
	for _, j := range list {
		if j.Metric.Verdict == muster.GradeUnstable {
			unsteady++
		}
		if j.Metric.Interval == nil || j.Metric.Interval.Level < 0.95 {
			t.Errorf("%+v", j.Metric)
		}
	}
	if unsteady < 20 {
		t.Errorf("%d of %d are unstable", unsteady, len(list))
	}
}

// Only suspects are condemned, and a launch that failed leaves a figure unknown.
func TestCondemned(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 2))
	rules := analysis.NodeRules(muster.ValidateQuick)
	m := measured{nodes: 12, figures: 4, slowFigures: 4, spread: 0.01, noise: 0.002, slow: map[int]float64{1: 0.4, 2: 0.4}}
	list, err := rules.Condemned(m.draw(r, 6), func(n int) bool { return n == 1 || n == 5 })
	if err != nil {
		t.Fatal(err)
	}
	if found := low(list); len(found) != 1 || !found[1] {
		t.Errorf("condemned: %v", found)
	}
	list, err = rules.Suspects(m.draw(r, 5))
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range list {
		if j.Metric.Interval != nil {
			t.Errorf("five launches give an interval: %+v", j.Metric)
		}
	}
	if _, err := rules.Suspects(m.draw(r, 7)); err == nil {
		t.Error("more launches than were decided are taken")
	}
}

// A thousand nodes with thirty figures are judged in a moment.
func BenchmarkSuspects(b *testing.B) {
	figures := measured{nodes: 1024, figures: 30, spread: 0.02, noise: 0.01}.draw(rand.New(rand.NewPCG(1, 1)), 6)
	rules := analysis.NodeRules(muster.ValidateQuick)
	for b.Loop() {
		if _, err := rules.Suspects(figures); err != nil {
			b.Fatal(err)
		}
	}
}

// Of many figures of a measurement in which nothing is wrong, those between nodes and of
// all of them too, hardly ever one is low: all tests count together.
func TestEverythingTogether(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 13))
	const runs = 150
	some, found := 0, 0
	for i := range 2 * runs {
		m := measured{nodes: 2, figures: 12, spread: 0.02, noise: 0.005, known: true}
		c := analysis.Collected{Nodes: m.draw(r, 6)}
		places := []analysis.Place{{Host: "a"}, {Host: "b"}}
		for k := range 9 {
			w := wires{places: places, spread: 0.02, noise: 0.005, history: true}
			if i >= runs && k == 4 {
				w.link = map[analysis.Pair]float64{{A: 0, B: 1}: 0.5}
			}
			f := w.draw(r)
			f.Name = fmt.Sprint("pair", k)
			c.Fabrics = append(c.Fabrics, f)
		}
		out, err := analysis.Judge(muster.ValidateQuick, c)
		if err != nil {
			t.Fatal(err)
		}
		if want := 24 + 9; out.Tests() != want {
			t.Fatalf("%d tests, not %d", out.Tests(), want)
		}
		links := 0
		for _, f := range out.Fabrics {
			if f.Links[0].Metric.Verdict == muster.GradeLow {
				links++
			}
		}
		switch {
		case i >= runs && out.Fabrics[4].Links[0].Metric.Verdict == muster.GradeLow:
			found++
		case i < runs && (links > 0 || len(low(out.Nodes)) > 0):
			some++
		}
	}
	t.Logf("nothing is wrong: something is found in %d of %d; a bad link in %d", some, runs, found)
	if some > 16 || found < runs*95/100 { // with a chance of 5 %, more is seen once in 1,000
		t.Errorf("nothing is wrong: something is found in %d of %d; a bad link in %d", some, runs, found)
	}
}
