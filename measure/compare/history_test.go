package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/compare"
	"github.com/muster-hpc/muster/wire"
)

// days is one measurement a day of a machine, changed by edit.
func days(r *rand.Rand, n, metrics int, noise float64, edit func(day int, c *muster.Certificate, value map[string]float64)) []compare.Measurement {
	var list []compare.Measurement
	for d := range n {
		c := node("m1", day(d))
		value := map[string]float64{}
		for i := range metrics {
			value[fmt.Sprintf("core.fp.k%d", i)] = math.Exp(float64(i) / 2)
		}
		if edit != nil {
			edit(d, &c, value)
		}
		for i := range metrics {
			name := fmt.Sprintf("core.fp.k%d", i)
			if v, ok := value[name]; ok {
				m := metric(r, name, v*math.Exp(noise*r.NormFloat64()), 0.001, 6)
				c.Metrics = append(c.Metrics, m)
			}
		}
		list = append(list, compare.Measurement{At: c.Made, Name: c.ID, Certificates: []muster.Certificate{c}})
	}
	return list
}

func history(t *testing.T, list []compare.Measurement) wire.History {
	t.Helper()
	h, err := compare.History(list, compare.UsualHistory())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A change that was planted is found on its day, with the metric that moved with
// it and the condition that changed.
func TestPlantedChange(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 8))
	exact, near, runs := 0, 0, 60
	for range runs {
		h := history(t, days(r, 30, 5, 0.01, func(d int, c *muster.Certificate, v map[string]float64) {
			if d >= 18 {
				v["core.fp.k1"] *= 0.95
				v["core.fp.k3"] *= 1.06
				c.Conditions.Kernel = "6.19.0"
			}
		}))
		if len(h.Events) != 1 || h.Events[0].Condition != "kernel" || h.Events[0].To != "6.19.0" || !h.Events[0].At.Equal(day(18)) || h.Events[0].Breaks {
			t.Fatalf("%+v", h.Events)
		}
		m := h.Metrics[1]
		if m.Used != 30 || len(m.Points) != 30 || len(m.Changes) == 0 {
			continue
		}
		c := m.Changes[0]
		if d := c.Measurement - 18; d >= -1 && d <= 1 {
			near++
		}
		if c.Measurement != 18 {
			continue
		}
		exact++
		if !c.At.Equal(day(18)) || math.Abs(c.After/c.Before-0.95) > 0.02 || len(c.Events) != 1 || len(c.With) == 0 || c.With[0].Name != "core.fp.k3" {
			t.Errorf("%+v", c)
		}
	}
	t.Logf("5 %% at 1 %% from day to day, after 18 of 30: found on its day in %d of %d, within a day in %d", exact, runs, near)
	if near < runs*95/100 || exact < runs*3/4 {
		t.Errorf("found on its day in %d of %d, within a day in %d", exact, runs, near)
	}
}

// The newest measurement is told if it is outside, with all that moved with it.
func TestNewestOutside(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 8))
	h := history(t, days(r, 25, 4, 0.005, func(d int, _ *muster.Certificate, v map[string]float64) {
		if d == 24 {
			v["core.fp.k0"] *= 0.9
			v["core.fp.k2"] *= 0.9
		}
	}))
	for i, m := range h.Metrics {
		want := i == 0 || i == 2
		if m.Outside != want || m.Expected == nil || m.Next == nil || m.Detectable == nil || *m.Detectable > 0.06 || len(m.Changes) > 0 {
			t.Errorf("%+v", m)
		}
		newest := m.Points[24].Median
		if in := m.Expected.Low <= newest && newest <= m.Expected.High; in == want {
			t.Errorf("%s: %v in %+v", m.Name, newest, m.Expected)
		}
		if want && (len(m.With) != 1 || m.With[0] == m.MetricKey) {
			t.Errorf("%s moved with %+v", m.Name, m.With)
		}
	}
}

// Where nothing changes, nothing is told but for the chances that are promised.
func TestHistoryIsHonest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 8))
	const runs, metrics = 60, 10
	changes, outside, inside := 0, 0, 0
	for range runs {
		h := history(t, days(r, 30, metrics, 0.01, nil))
		any := false
		for _, m := range h.Metrics {
			if len(m.Changes) > 0 {
				changes++
			}
			any = any || m.Outside
			if v := m.Points[29].Median; m.Expected != nil && m.Expected.Low <= v && v <= m.Expected.High {
				inside++
			}
		}
		if any {
			outside++
		}
	}
	for _, c := range []struct {
		what    string
		k, n    int
		promise float64
	}{{"metrics with a change", changes, runs * metrics, 0.01}, {"histories whose newest is outside", outside, runs, 0.05}, {"figures outside of their region of 99 %", runs*metrics - inside, runs * metrics, 0.01}} {
		v, err := stat.ClopperPearson(c.k, c.n, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("nothing changed in 30 measurements: %d of %d %s (95 %%: %.2f to %.2f %%), %g %% are promised", c.k, c.n, c.what, 100*v.Low, 100*v.High, 100*c.promise)
		if v.Low > c.promise {
			t.Errorf("%d of %d %s", c.k, c.n, c.what)
		}
	}
}

func TestWhatHistoriesUse(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 8))
	// Another build of the probe begins anew.
	h := history(t, days(r, 20, 1, 0.01, func(d int, c *muster.Certificate, v map[string]float64) {
		if d >= 8 {
			c.Conditions.Probe = &muster.Probe{Source: "sha256:bb"}
			v["core.fp.k0"] *= 2
		}
	}))
	if m := h.Metrics[0]; m.Used != 12 || len(m.Points) != 20 || len(m.Changes) != 0 || m.Median < 1.8 || m.Outside || !h.Events[0].Breaks {
		t.Errorf("%+v %+v", m, h.Events)
	}
	// Reports are not used, where there are certificates.
	report := func(d int, c *muster.Certificate, _ map[string]float64) {
		if d%2 == 0 {
			c.Certified, c.Caveats = false, []muster.Caveat{{Code: "shared", Text: "x"}}
		}
	}
	if h = history(t, days(r, 20, 1, 0.01, report)); h.Metrics[0].Used != 10 || h.Measurements[0].Certified || !h.Measurements[1].Certified {
		t.Errorf("%+v", h.Metrics[0])
	}
	// Where there are only reports, they are.
	if h = history(t, days(r, 20, 1, 0.01, func(_ int, c *muster.Certificate, v map[string]float64) { report(0, c, v) })); h.Metrics[0].Used != 20 {
		t.Errorf("%+v", h.Metrics[0])
	}
	// A metric that the newest has not is not outside; zeros have no logs.
	h = history(t, days(r, 12, 2, 0.01, func(d int, _ *muster.Certificate, v map[string]float64) {
		if d == 11 {
			delete(v, "core.fp.k1")
		}
		v["core.fp.k0"] = 0
	}))
	if m := h.Metrics[0]; m.Expected == nil || m.Expected.Low != 0 || m.Outside || m.Detectable != nil {
		t.Errorf("%+v", m)
	}
	if m := h.Metrics[1]; m.Expected != nil || m.Next == nil || m.Used != 11 {
		t.Errorf("%+v", m)
	}
	// What is called outside is outside of what was expected, with one metric, too.
	for range 200 {
		for _, m := range history(t, days(r, 12, 1, 0.01, nil)).Metrics {
			if v := m.Points[11].Median; m.Outside && m.Expected.Low <= v && v <= m.Expected.High {
				t.Errorf("%+v", m)
			}
		}
	}
	// Little is little; nothing is nothing; the order does not matter.
	list := days(r, 4, 2, 0.01, nil)
	list[0], list[3] = list[3], list[0]
	h = history(t, list)
	if m := h.Metrics[0]; m.Expected != nil || m.Next == nil || len(m.Changes) > 0 || !h.Measurements[0].At.Equal(day(0)) {
		t.Errorf("%+v", m)
	}
	if h = history(t, nil); len(h.Metrics) != 0 || h.Events == nil || h.Measurements == nil {
		t.Errorf("%+v", h)
	}
}
