package compare_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/compare"
	"github.com/muster-hpc/muster/wire"
)

// made is what a made-up cluster of three nodes shows.
type made struct {
	large, small, bandwidth map[string]float64 // by pair: 2,000,000 B latency, that of 8 B, bandwidth
	memory, core, noise     float64
}

func usual() made {
	m := made{large: map[string]float64{}, small: map[string]float64{}, bandwidth: map[string]float64{}, memory: 20e9, core: 30e9, noise: 0.001}
	for _, p := range []string{"n01 n02", "n01 n03", "n02 n03"} {
		m.large[p], m.small[p], m.bandwidth[p] = 2e-3, 20e-6, 1e9
	}
	return m
}

func (m made) measured(at time.Time) compare.Measurement {
	c := manifest(3, at)
	c.Cluster, c.Pairs = "c-2345678bcd", &muster.Pairs{}
	for _, p := range []string{"n01 n02", "n01 n03", "n02 n03"} {
		from, to, _ := strings.Cut(p, " ")
		c.Pairs.Figures = append(c.Pairs.Figures, muster.PairFigure{Metric: "pair.latency", Size: 2e6, From: from, To: to, Value: m.large[p]},
			muster.PairFigure{Metric: "pair.latency", Size: 8, From: from, To: to, Value: m.small[p]}, muster.PairFigure{Metric: "pair.bandwidth", Size: 2e6, From: from, To: to, Value: m.bandwidth[p]})
	}
	out := compare.Measurement{At: at, Certificates: []muster.Certificate{c}}
	for _, name := range []string{"m1", "m2", "m3"} {
		n := node(name, at)
		n.Cluster = c.Cluster
		n.Metrics = []muster.Metric{{Name: "stream.triad", Unit: "B/s", Median: m.memory}, {Name: "dgemm", Unit: "flop/s", Median: m.core}, {Name: "noise.share", Unit: "1", Less: true, Median: m.noise}}
		out.Certificates = append(out.Certificates, n)
	}
	return out
}

func linpack(at time.Time, rate float64) muster.HPLResult {
	return muster.HPLResult{ID: muster.NewHPLID(), Cluster: "c-2345678bcd", Nodes: []string{"n01", "n02", "n03"}, Cores: 12, Began: at.Add(-time.Hour), Made: at, Setting: muster.HPLSetting{N: 8000},
		Rate: muster.Metric{Name: "hpl", Unit: "flop/s", Launches: 3, Median: rate, Min: 0.99 * rate, Max: 1.01 * rate}}
}

func causeWords(list []wire.HPLCause) string {
	var words []string
	for _, c := range list {
		words = append(words, strings.TrimSpace(c.What+" "+c.From+" "+c.To))
	}
	return strings.Join(words, "; ")
}

// A link that is held to a tenth: its latency of large messages and its bandwidth are named, and
// it is said that small messages, memory and cores did not move. The other way around, too.
func TestHPLNamesTheLink(t *testing.T) {
	t.Parallel()
	slow := usual()
	slow.large["n01 n03"], slow.bandwidth["n01 n03"], slow.small["n01 n03"] = 21e-3, 0.1e9, 20.5e-6
	list := []compare.Measurement{usual().measured(day(1)), slow.measured(day(3)), usual().measured(day(5))}
	h := compare.HPL([]muster.HPLResult{linpack(day(2), 16e9), linpack(day(4), 1.5e9), linpack(day(6), 17e9)}, list)
	if len(h.Runs) != 3 || h.Median != 16e9 || h.Min != 0.99*1.5e9 || h.Max != 1.01*17e9 || len(h.Changes) != 2 {
		t.Fatalf("%+v", h)
	}
	for i, c := range h.Changes {
		if c.Unexplained != "" || !c.MeasuredBefore.Equal(day(1+2*i)) || !c.MeasuredAfter.Equal(day(3+2*i)) {
			t.Errorf("%+v", c)
		}
		if got := causeWords(c.Causes); got != "largest latency of 2,000,000 B n01 n03; lowest bandwidth of 2,000,000 B n01 n03" {
			t.Errorf("caused by %s", got)
		}
		if got := causeWords(c.Unmoved); !strings.HasPrefix(got, "largest latency of 8 B") || !strings.Contains(got, "core; other load; memory") {
			t.Errorf("not by %s", got)
		}
	}
	if c := h.Changes[0].Causes[0]; c.Before != 2e-3 || c.After != 21e-3 {
		t.Errorf("%+v", c)
	}
}

// Certificates as they are made have latencies of large messages over ranges only.
func TestHPLNamesSweeps(t *testing.T) {
	t.Parallel()
	sweeps := func(m compare.Measurement, size, ring float64) compare.Measurement {
		pairs := m.Certificates[0].Pairs
		kept := pairs.Figures[:0]
		for _, f := range pairs.Figures {
			if f.Metric != "pair.latency" || f.Size == 8 {
				kept = append(kept, f)
			}
		}
		pairs.Figures = kept
		m.Certificates[0].Sweeps = []muster.Sweep{{Metric: "size.latency", Over: "size", Points: []muster.SweepPoint{{At: 8, Max: 1}, {At: 2e6, Max: size}}},
			{Metric: "scale.random.latency", Over: "nodes", Size: 2e6, Points: []muster.SweepPoint{{At: 2, Max: ring / 2}, {At: 3, Max: ring}}},
			{Metric: "scale.random.latency", Over: "nodes", Size: 8, Points: []muster.SweepPoint{{At: 3, Max: 1}}}}
		return m
	}
	slow := usual()
	slow.bandwidth["n01 n02"] /= 10
	h := compare.HPL([]muster.HPLResult{linpack(day(2), 16e9), linpack(day(4), 1.5e9)}, []compare.Measurement{sweeps(usual().measured(day(1)), 3e-3, 4e-3), sweeps(slow.measured(day(3)), 60e-3, 20e-3)})
	c := h.Changes[0]
	if got := causeWords(c.Causes); got != "largest latency of 2,000,000 B; largest latency of 2,000,000 B n01 n02; lowest bandwidth of 2,000,000 B n01 n02; largest latency of 2,000,000 B" ||
		c.Causes[0].Name != "size.latency" || c.Causes[3].After != 20e-3 {
		t.Errorf("%+v", c.Causes)
	}
	if got := causeWords(c.Unmoved); !strings.HasPrefix(got, "largest latency of 8 B") {
		t.Errorf("%q", got)
	}
}

// Without sweeps the latency of large messages of a pair follows from its bandwidth, and stands first.
func TestHPLDerivesLatencies(t *testing.T) {
	t.Parallel()
	without := func(m compare.Measurement) compare.Measurement {
		pairs := m.Certificates[0].Pairs
		pairs.Figures = slices.DeleteFunc(pairs.Figures, func(f muster.PairFigure) bool { return f.Metric == "pair.latency" && f.Size != 8 })
		return m
	}
	slow := usual()
	slow.bandwidth["n02 n03"], slow.bandwidth["n01 n03"] = 0.1e9, 0.11e9
	h := compare.HPL([]muster.HPLResult{linpack(day(2), 16e9), linpack(day(4), 1.5e9)}, []compare.Measurement{without(usual().measured(day(1))), without(slow.measured(day(3)))})
	c := h.Changes[0]
	if got := causeWords(c.Causes); got != "largest latency of 2,000,000 B n02 n03; lowest bandwidth of 2,000,000 B n02 n03" {
		t.Fatal(got)
	}
	if v := c.Causes[0]; !v.Derived || v.Before != 2e-3 || v.After != 20e-3 || v.Name != "pair.latency" || v.Size != 2e6 || c.Causes[1].Derived {
		t.Errorf("%+v", c.Causes)
	}
	if got := causeWords(c.Unmoved); !strings.HasPrefix(got, "largest latency of 8 B") || c.Unmoved[0].Derived {
		t.Errorf("%q", got)
	}
}

// Memory, cores and others are named where they moved, and the strongest stands first.
func TestHPLOtherCauses(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*made){
		"memory":                         func(m *made) { m.memory /= 2 },
		"core; memory":                   func(m *made) { m.core /= 3; m.memory /= 2 },
		"other load":                     func(m *made) { m.noise *= 50 },
		"largest latency of 8 B n02 n03": func(m *made) { m.small["n02 n03"] *= 4 },
		"":                               func(m *made) { m.memory *= 2 }, // better, while HPL is worse
	} {
		m := usual()
		edit(&m)
		b := linpack(day(4), 8e9)
		b.Caveats = []muster.Caveat{{Code: muster.CaveatDisturbed}}
		h := compare.HPL([]muster.HPLResult{linpack(day(2), 16e9), b}, []compare.Measurement{usual().measured(day(1)), m.measured(day(3))})
		if got := causeWords(h.Changes[0].Causes); got != want {
			t.Errorf("%q is said to be by %q", want, got)
		}
		if e := h.Changes[0].Conditions; len(e) != 1 || e[0].Condition != muster.CaveatDisturbed || e[0].To != "yes" {
			t.Errorf("%+v", e)
		}
	}
}

// What is no change is not told, and what nobody measured is not explained.
func TestHPLWithoutChanges(t *testing.T) {
	t.Parallel()
	if compare.HPL(nil, nil) != nil {
		t.Error("no result is a history")
	}
	wide := linpack(day(4), 15e9)
	wide.Rate.Max = 17e9
	bigger := linpack(day(6), 32e9)
	bigger.Nodes = append(bigger.Nodes, "n04")
	if h := compare.HPL([]muster.HPLResult{linpack(day(2), 16e9), wide, linpack(day(5), 16.4e9), bigger}, nil); len(h.Changes) != 0 || len(h.Runs) != 4 {
		t.Errorf("%+v", h.Changes)
	}
	for _, list := range [][]compare.Measurement{nil, {usual().measured(day(1))}, {usual().measured(day(3))}} {
		h := compare.HPL([]muster.HPLResult{linpack(day(2), 16e9), linpack(day(4), 8e9)}, list)
		if len(h.Changes) != 1 || h.Changes[0].Unexplained == "" || h.Changes[0].Causes != nil {
			t.Errorf("%+v", h.Changes)
		}
	}
	// Measured twice after the first run: the change lies between these at the latest.
	slow := usual()
	slow.memory /= 4
	h := compare.HPL([]muster.HPLResult{linpack(day(2), 16e9), linpack(day(5), 8e9)}, []compare.Measurement{usual().measured(day(3)), slow.measured(day(4))})
	if got := causeWords(h.Changes[0].Causes); got != "memory" {
		t.Errorf("%q", got)
	}
}
