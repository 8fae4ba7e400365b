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
	"pgregory.net/rapid"
)

func sides(a, b []muster.Certificate) []compare.Side {
	return []compare.Side{{As: wire.ComparedSide{Name: "a"}, Certificates: a}, {As: wire.ComparedSide{Name: "b"}, Certificates: b}}
}

func sideBySide(t interface{ Fatal(...any) }, a, b []muster.Certificate) wire.Comparison {
	c, err := compare.Compare(sides(a, b), compare.Usual())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fleet is several metrics of one node; shift multiplies each.
func fleet(r *rand.Rand, metrics, launches int, noise float64, shift map[string]float64) []muster.Certificate {
	c := node("m1", day(0))
	for i := range metrics {
		name := fmt.Sprintf("core.fp.k%d", i)
		if i%3 == 0 {
			name = fmt.Sprintf("x%d.latency", i)
		}
		value := math.Exp(float64(i))
		if s := shift[name]; s > 0 {
			value *= s
		}
		c.Metrics = append(c.Metrics, metric(r, name, value, noise, launches))
	}
	return []muster.Certificate{c}
}

func TestSwappedSidesInvert(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		shift := map[string]float64{"core.fp.k1": rapid.Float64Range(0.5, 2).Draw(rt, "shift"), "x3.latency": rapid.Float64Range(0.5, 2).Draw(rt, "other")}
		a := fleet(r, 5, rapid.IntRange(1, 15).Draw(rt, "launches"), 0.02, nil)
		b := fleet(r, 5, rapid.IntRange(1, 15).Draw(rt, "more"), 0.02, shift)
		one, two := sideBySide(rt, a, b), sideBySide(rt, b, a)
		close := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*math.Abs(y) }
		other := map[string]string{wire.Better: wire.Worse, wire.Worse: wire.Better}
		for i, m := range one.Metrics {
			n := two.Metrics[i]
			want := m.Verdict
			if o := other[want]; o != "" {
				want = o
			}
			if !close(*m.Ratio, 1 / *n.Ratio) || n.Verdict != want || !close(*m.Chance, *n.Chance) || (m.Interval == nil) != (n.Interval == nil) || (m.Detectable == nil) != (n.Detectable == nil) {
				rt.Fatalf("%+v\n%+v", m, n)
			}
			if m.Interval != nil && (!close(m.Interval.Low, 1/n.Interval.High) || !close(m.Interval.High, 1/n.Interval.Low)) {
				rt.Fatalf("%+v\n%+v", *m.Interval, *n.Interval)
			}
			if m.First != n.Here || m.Here != n.First {
				rt.Fatalf("%+v\n%+v", m, n)
			}
		}
	})
}

func TestIdenticalIsIndistinguishable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		a := fleet(r, 8, rapid.IntRange(1, 20).Draw(rt, "launches"), rapid.Float64Range(0, 0.3).Draw(rt, "noise"), nil)
		for _, m := range sideBySide(rt, a, a).Metrics {
			if m.Verdict != wire.Indistinguishable || math.Abs(*m.Ratio-1) > 1e-12 || *m.Adjusted < 0.5 {
				rt.Fatalf("%+v", m)
			}
		}
	})
}

// A loss of 5 % in launches that differ by 1 % is found, and told by its direction.
func TestPlantedDifference(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	found, runs := 0, 100
	for range runs {
		a := fleet(r, 40, 15, 0.01, nil)
		b := fleet(r, 40, 15, 0.01, map[string]float64{"core.fp.k1": 0.95, "x3.latency": 0.95})
		got := map[string]wire.ComparedMetric{}
		for _, m := range sideBySide(t, a, b).Metrics {
			got[m.Name] = m
		}
		if m := got["core.fp.k1"]; m.Verdict == wire.Worse && m.Interval.Low <= 0.96 && m.Interval.High >= 0.94 && *m.Ratio < 0.97 {
			found++
		}
		if m := got["x3.latency"]; m.Verdict == wire.Worse {
			t.Errorf("a shorter latency is %s", m.Verdict)
		}
	}
	t.Logf("a loss of 5 %% at 1 %% between launches, 15 launches, 40 metrics: found in %d of %d", found, runs)
	if found < runs*99/100 {
		t.Errorf("found in %d of %d", found, runs)
	}
}

// Where nothing differs nothing is told, but for the share that is promised; the
// smallest detectable difference is detected as often as it says, or more.
func TestComparisonIsHonest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	rules := compare.Usual()
	rules.Worth = 0
	const runs = 100
	for _, launches := range []int{6, 9, 15} {
		wrong, alarms, tests := 0, 0, 0
		smallest := []float64{}
		for range runs {
			c, err := compare.Compare(sides(fleet(r, 40, launches, 0.02, nil), fleet(r, 40, launches, 0.02, nil)), rules)
			if err != nil {
				t.Fatal(err)
			}
			any := false
			for _, m := range c.Metrics {
				tests++
				if m.Verdict != wire.Indistinguishable {
					wrong++
					any = true
				}
				if m.Detectable != nil {
					smallest = append(smallest, *m.Detectable)
				}
			}
			if any {
				alarms++
			}
		}
		chance, err := stat.ClopperPearson(alarms, runs, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d launches, 40 metrics alike: %d of %d told to differ, in %.1f %% of comparisons (95 %%: %.1f to %.1f); smallest detectable %.3f",
			launches, wrong, tests, 100*float64(alarms)/runs, 100*chance.Low, 100*chance.High, stat.Median(smallest))
		if chance.Low > rules.False {
			t.Errorf("%d launches: %d false alarms of %d", launches, alarms, runs)
		}
		if launches == 6 { // 6 and 6 can be told by ranks in 924 ways
			if len(smallest) > 0 {
				t.Error("6 and 6 launches cannot tell one metric among 40")
			}
			continue
		}
		seen := 0
		for range runs {
			b := fleet(r, 40, launches, 0.02, map[string]float64{"core.fp.k1": 1 + stat.Median(smallest)})
			c, err := compare.Compare(sides(fleet(r, 40, launches, 0.02, nil), b), rules)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range c.Metrics {
				if m.Name == "core.fp.k1" && m.Verdict == wire.Better {
					seen++
				}
			}
		}
		t.Logf("%d launches: the smallest detectable is seen in %d of %d", launches, seen, runs)
		if seen < runs*86/100 {
			t.Errorf("%d launches: seen in %d of %d", launches, seen, runs)
		}
	}
}

func TestOnlyLikeWithLike(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	fresh := func() []muster.Certificate {
		n, m := node("m1", day(0)), manifest(2, day(0))
		n.Metrics = []muster.Metric{metric(r, "dgemm", 1e11, 0.01, 12), metric(r, "stream.triad", 1e10, 0.01, 12), metric(r, "disk.read", 1e9, 0.01, 12)}
		m.Metrics = []muster.Metric{metric(r, "alltoall", 1e9, 0.01, 12)}
		p := metric(r, "pair.latency", 1e-6, 0.01, 12)
		p.Distance, p.Size = "host", 8
		m.Pairs = &muster.Pairs{Measured: 1, Possible: 1, Metrics: []muster.Metric{p, metric(r, "net.tcp.bandwidth", 1e9, 0.01, 12)}}
		return []muster.Certificate{m, n}
	}
	all := []string{"dgemm", "stream.triad", "disk.read", "alltoall", "pair.latency", "net.tcp.bandwidth"}
	for name, c := range map[string]struct {
		change func(node, manifest *muster.Certificate)
		stops  []string // metrics
		reason string
		waived bool // may be
	}{
		"processor": {func(n, _ *muster.Certificate) { n.Conditions.Processor = "Xeon" }, all, "processor: EPYC 9354, and here Xeon", true},
		"probe": {func(n, m *muster.Certificate) {
			p := *n.Conditions.Probe
			p.Compiler = "clang"
			n.Conditions.Probe, m.Conditions.Probe = &p, &p
		},
			all, "probe: sha256:aa gcc 14, and here sha256:aa clang", false},
		"certified": {func(n, _ *muster.Certificate) {
			n.Certified, n.Caveats = false, []muster.Caveat{{Code: "oversubscribed", Text: "x"}}
		},
			all, "certified: yes, and here no: oversubscribed | yes", false},
		"blas":      {func(n, _ *muster.Certificate) { n.Conditions.BLAS = &muster.Library{File: "libblas.so.3"} }, []string{"dgemm"}, "blas: /usr/lib/libopenblas.so.0, and here libblas.so.3", true},
		"transport": {func(n, _ *muster.Certificate) { n.Conditions.Transport = "ucx" }, []string{"alltoall", "pair.latency"}, "transport: ob1: tcp, and here ucx", true},
		"scratch": {func(n, _ *muster.Certificate) {
			n.Conditions.Scratch = &muster.Scratch{Path: "/tmp", Type: "tmpfs", Memory: true, Direct: true}
		}, []string{"disk.read"}, "scratch: ext4, through the page cache, and here tmpfs, in memory", true},
		"tools":   {func(n, _ *muster.Certificate) { n.Conditions.Tools = []string{"fio-3.40"} }, []string{"disk.read", "net.tcp.bandwidth"}, "tools: fio-3.39, iperf 3.18, and here fio-3.40", true},
		"nodes":   {func(_, m *muster.Certificate) { m.Nodes = append(m.Nodes, m.Nodes[0]) }, []string{"alltoall"}, "nodes: 2, and here 3", true},
		"pinning": {func(n, _ *muster.Certificate) { n.Conditions.Pinning = "0-15 16-31" }, all, "pinning: 32 a rank, and here 16", true},
		"kernel":  {func(n, _ *muster.Certificate) { n.Conditions.Kernel = "6.19" }, nil, "", false},
		"image":   {func(n, _ *muster.Certificate) { n.Image = "sha256:cd" }, nil, "", false},
		"cache":   {func(n, _ *muster.Certificate) { n.Conditions.Cache = 1 << 20 }, nil, "", false}, // of the first it is not known
	} {
		a, b := fresh(), fresh()
		c.change(&b[1], &b[0])
		check := func(across string, want []string) {
			rules := compare.Usual()
			if across != "" {
				rules.Across = []string{across}
			}
			got, err := compare.Compare(sides(a, b), rules)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Metrics) != len(all) || len(got.Sides[1].Differ) != 1 || got.Sides[1].Differ[0].Condition != name {
				t.Errorf("%s: %+v", name, got.Sides[1].Differ)
			}
			stopped := 0
			for _, m := range got.Metrics {
				if m.Verdict != wire.NotComparable {
					continue
				}
				stopped++
				if len(m.Reason) < len(c.reason) || m.Reason[:len(c.reason)] != c.reason || m.Chance != nil {
					t.Errorf("%s: %q, want %q", name, m.Reason, c.reason)
				}
			}
			if stopped != len(want) || got.Tests != len(all)-stopped {
				t.Errorf("%s across %q: %d metrics are not compared, want %v", name, across, stopped, want)
			}
		}
		check("", c.stops)
		if err := compare.Across([]string{name}); (err == nil) != (c.waived || name == "cache") {
			t.Errorf("across %s: %v", name, err)
		}
		if c.waived {
			check(name, nil)
		}
	}
	// Reports are not compared with each other either.
	a := fresh()
	a[1].Certified, a[1].Caveats = false, []muster.Caveat{{Code: "shared", Text: "x"}}
	if c := sideBySide(t, a, a); c.Tests != 0 {
		t.Errorf("%+v", c)
	}
	// The same processors, other numbers.
	b, moved := fresh(), fresh()
	b[1].Conditions.Pinning, moved[1].Conditions.Pinning = "cpus 0-1,4", "cpus 8-10"
	if c := sideBySide(t, b, moved); len(c.Sides[1].Differ) != 0 {
		t.Errorf("%+v", c.Sides[1].Differ)
	}
	if err := compare.Across([]string{"colour"}); muster.CodeOf(err) != muster.EInvalid {
		t.Error(err)
	}
}

// A launch of a cluster is the median of its nodes in that launch; a node of which
// one failed is left out. A class is compared by machines.
func TestReplications(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	var certs []muster.Certificate
	for i, launches := range [][]float64{{1, 2, 3}, {3, 4, 5}, {9, 9}} {
		c := node(fmt.Sprint("m", i), day(0))
		m := metric(r, "dgemm", 1, 0, len(launches))
		m.ByLaunch, m.Median, m.Min, m.Max = launches, stat.Median(launches), launches[0], launches[len(launches)-1]
		c.Metrics = []muster.Metric{m}
		certs = append(certs, c)
	}
	got := sideBySide(t, certs[:1], certs).Metrics[0]
	if got.Here.Count != 3 || got.Here.Median != 4 || got.Here.Min != 1 || got.Here.Max != 9 || math.Abs(*got.Ratio-1.5) > 1e-9 || got.Detectable != nil {
		t.Errorf("%+v", got)
	}
	rules := compare.Usual()
	rules.Machines = true
	c, err := compare.Compare(sides(certs, certs), rules)
	if err != nil || c.Unit != "machine" || c.Metrics[0].Here.Count != 3 || c.Sides[1].Nodes != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	// Without launches nothing is said; a zero has no ratio, and has ranks.
	plain := node("m1", day(0))
	plain.Metrics = []muster.Metric{{Name: "dgemm", Unit: "flop/s", Launches: 6, Median: 1, Min: 1, Max: 1, Verdict: muster.GradeUnknown}}
	if m := sideBySide(t, []muster.Certificate{plain}, []muster.Certificate{plain}).Metrics[0]; m.Verdict != wire.NotComparable || m.Reason == "" {
		t.Errorf("%+v", m)
	}
	zero := fleet(r, 1, 12, 0.01, nil)
	zero[0].Metrics[0].ByLaunch = make([]float64, 12)
	zero[0].Metrics[0].Median, zero[0].Metrics[0].Min = 0, 0
	if m := sideBySide(t, fleet(r, 1, 12, 0.01, nil), zero).Metrics[0]; m.Verdict != wire.Better || m.Ratio != nil || m.Interval != nil {
		t.Errorf("%+v", m)
	}
}

// Three sides are each held against the first, and all tests count together.
func TestMoreThanTwo(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	list := sides(fleet(r, 3, 12, 0.01, nil), fleet(r, 3, 12, 0.01, nil))
	list = append(list, compare.Side{As: wire.ComparedSide{Name: "c"}, Certificates: fleet(r, 4, 12, 0.01, map[string]float64{"core.fp.k1": 2})})
	rules := compare.Usual()
	c, err := compare.Compare(list, rules)
	if err != nil || c.Tests != 6 || len(c.Metrics) != 6 || c.Sides[2].Missing != 1 || c.Metrics[5].Side != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	rules.Metric = "core.fp"
	if c, err = compare.Compare(list, rules); err != nil || c.Tests != 4 {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, m := range c.Metrics {
		if want := map[bool]string{true: wire.Better, false: wire.Indistinguishable}[m.Side == 2 && m.Name == "core.fp.k1"]; m.Verdict != want {
			t.Errorf("%+v", m)
		}
	}
}
