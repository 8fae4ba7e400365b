package analysis_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

func TestParsePromises(t *testing.T) {
	t.Parallel()
	got, err := analysis.ParseTargets(`
# class   metric          at least
epyc-16   stream.triad    300GB/s      threads=16 tolerance=2%
*         pair.latency    8us          distance=rack   # at most
*         pair.bandwidth  1.5e9B/s     size=1MiB
epyc-16   noise.share     2%
epyc-16   noise.share     0.03         threads=4
epyc-16   dgemm           1.2Tflop/s   tolerance=0%
`)
	want := analysis.Targets{
		{Class: "epyc-16", Metric: "stream.triad", Value: 300e9, Threads: 16, Tolerance: 0.02},
		{Class: "*", Metric: "pair.latency", Value: 8e-6, Distance: analysis.SameRack, Tolerance: 0.05},
		{Class: "*", Metric: "pair.bandwidth", Value: 1.5e9, Size: 1 << 20, Tolerance: 0.05},
		{Class: "epyc-16", Metric: "noise.share", Value: 0.02, Tolerance: 0.05},
		{Class: "epyc-16", Metric: "noise.share", Value: 0.03, Threads: 4, Tolerance: 0.05},
		{Class: "epyc-16", Metric: "dgemm", Value: 1.2e12},
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, p := range got {
		if w := want[i]; math.Abs(p.Value/w.Value-1) > 1e-12 {
			t.Errorf("%+v, not %+v", p, w)
		}
		p.Value = want[i].Value
		if p != want[i] {
			t.Errorf("%+v, not %+v", p, want[i])
		}
	}
}

// Every problem is told at once.
func TestPromisesThatCannotBe(t *testing.T) {
	t.Parallel()
	lines := []struct{ line, problem string }{ // problem: the field of it
		{"a dgemm", "line 1"},
		{"a dgem 1flop/s", "line 2"},
		{"a dgemm 1B/s", "line 3"},
		{"a latency -1us", "line 4"},
		{"a latency 0s", "line 5"},
		{"a noise.share 5ms", "line 6"},
		{"a latency 1us size=1MB", "line 7"},
		{"a latency 1us threads=0", "line 8"},
		{"a latency 1us distance=far", "line 9"},
		{"a latency 1us tolerance=5", "line 10"},
		{"a latency 1us tolerance=100%", "line 11"},
		{"a latency 1us thread=4", "line 12"},
		{"a latency 1us size=999999999GiB", "line 13"},
		{"a latency 1e99Gs", "line 14"},
		{"a latency 1us", ""},
		{"a latency 2us", "line 16"},
		{"a core.int.* 1op/s", "line 17"},
	}
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.line + "\n")
	}
	_, err := analysis.ParseTargets(text.String())
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EInvalid || e.Hint == "" {
		t.Fatal(err)
	}
	n := 0
	for _, l := range lines {
		if l.problem == "" {
			continue
		}
		n++
		if !slices.ContainsFunc(e.Problems, func(p muster.Problem) bool { return p.Field == l.problem }) {
			t.Errorf("nothing says %q: %v", l.problem, err)
		}
	}
	if len(e.Problems) != n {
		t.Errorf("%d problems, not %d: %v", len(e.Problems), n, err)
	}
}

func FuzzPromises(f *testing.F) {
	f.Add("epyc-16 stream.triad 300GB/s threads=16 tolerance=2%\n* pair.latency 8us distance=rack # x")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := analysis.ParseTargets(text)
		if err != nil && muster.CodeOf(err) != muster.EInvalid {
			t.Fatal(err)
		}
		for _, p := range list {
			if !(p.Value > 0) || math.IsInf(p.Value, 0) || p.Size < 0 || p.Threads < 0 || p.Tolerance < 0 || p.Tolerance >= 1 {
				t.Fatalf("%+v", p)
			}
		}
	})
}

// What says most of a figure counts.
func TestFindPromise(t *testing.T) {
	t.Parallel()
	list, err := analysis.ParseTargets("* stream.triad 1GB/s\nx stream.triad 2GB/s\n* stream.triad 3GB/s threads=4\nx stream.triad 4GB/s threads=4\n* pair.latency 9us distance=rack")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		class  string
		metric muster.Metric
		want   float64
	}{
		{"y", muster.Metric{Name: "stream.triad"}, 1e9},
		{"x", muster.Metric{Name: "stream.triad"}, 2e9},
		{"y", muster.Metric{Name: "stream.triad", Threads: 4}, 3e9},
		{"x", muster.Metric{Name: "stream.triad", Threads: 4}, 4e9},
		{"x", muster.Metric{Name: "pair.latency", Distance: "rack"}, 9e-6},
		{"x", muster.Metric{Name: "pair.latency", Distance: "site"}, 0},
		{"x", muster.Metric{Name: "dgemm"}, 0},
	} {
		p, ok := list.Find(c.class, c.metric)
		if ok != (c.want > 0) || math.Abs(p.Value-c.want) > c.want*1e-9 {
			t.Errorf("%+v: %+v", c, p)
		}
	}
}

// A promise convicts and acquits; a peak does neither.
func TestRefer(t *testing.T) {
	t.Parallel()
	promises, err := analysis.ParseTargets("x dgemm 100Gflop/s tolerance=5%\nx latency 100ns tolerance=10%")
	if err != nil {
		t.Fatal(err)
	}
	nodes := []analysis.Candidate{
		{Node: analysis.Node{Name: "n01", Class: "x"}, Conditions: muster.TestEnvironment{Cores: 1, Flags: []string{"avx2", "fma"}, Clock: &muster.ProcessorClock{Base: 5e9}}},
		{Node: analysis.Node{Name: "n02", Class: "y"}, Conditions: muster.TestEnvironment{Cores: 1, Flags: []string{"avx2", "fma"}, Clock: &muster.ProcessorClock{Base: 5e9}}},
	}
	history := &muster.Reference{Value: 90e9, Source: muster.SourceHistory}
	for name, c := range map[string]struct {
		node      int
		metric    string
		low, high float64 // 0: no interval
		was       muster.Grade
		ref       *muster.Reference
		want      muster.Grade
		source    muster.Source
		others    int
	}{
		"below":                 {0, "dgemm", 80e9, 94e9, muster.GradeUnknown, nil, muster.GradeLow, muster.SourceTarget, 1},
		"perhaps not below":     {0, "dgemm", 80e9, 95.1e9, muster.GradeUnknown, nil, muster.GradePass, muster.SourceTarget, 1},
		"too few launches":      {0, "dgemm", 0, 0, muster.GradeUnknown, nil, muster.GradeUnknown, muster.SourceTarget, 1},
		"usual and not enough":  {0, "dgemm", 80e9, 94e9, muster.GradePass, history, muster.GradeLow, muster.SourceTarget, 2},
		"usual and enough":      {0, "dgemm", 99e9, 101e9, muster.GradePass, history, muster.GradePass, muster.SourceHistory, 2},
		"enough, and not usual": {0, "dgemm", 99e9, 101e9, muster.GradeLow, history, muster.GradeLow, muster.SourceHistory, 2},
		"neither":               {0, "dgemm", 80e9, 94e9, muster.GradeLow, history, muster.GradeLow, muster.SourceHistory, 2},
		"unstable and enough":   {0, "dgemm", 80e9, 120e9, muster.GradeUnstable, history, muster.GradeUnstable, muster.SourceHistory, 2},
		"unstable and below":    {0, "dgemm", 10e9, 60e9, muster.GradeUnstable, history, muster.GradeLow, muster.SourceTarget, 2},
		"slow to answer":        {0, "latency", 111e-9, 120e-9, muster.GradeUnknown, nil, muster.GradeLow, muster.SourceTarget, 0},
		"quick enough":          {0, "latency", 109e-9, 120e-9, muster.GradeUnknown, nil, muster.GradePass, muster.SourceTarget, 0},
		"peak alone":            {1, "dgemm", 1e9, 2e9, muster.GradeUnknown, nil, muster.GradeUnknown, muster.SourcePeak, 0},
		"peak beside":           {1, "dgemm", 1e9, 2e9, muster.GradePass, history, muster.GradePass, muster.SourceHistory, 1},
		"nothing":               {1, "latency", 1, 2, muster.GradeUnknown, nil, muster.GradeUnknown, "", 0},
	} {
		m := muster.Metric{Name: c.metric, Unit: "flop/s", Less: c.metric == "latency", Launches: 6, Median: (c.low + c.high) / 2, Min: c.low, Max: c.high, Verdict: c.was, Reference: c.ref}
		if c.high > 0 {
			m.Interval = &muster.Interval{Low: c.low, High: c.high, Level: 0.96}
		}
		list := []analysis.Judged{{Node: c.node, Metric: m, Deficit: math.NaN(), P: math.NaN(), Adjusted: math.NaN()}}
		analysis.Refer(nodes, list, promises)
		got := list[0].Metric
		source := muster.Source("")
		if got.Reference != nil {
			source = got.Reference.Source
		}
		if got.Verdict != c.want || source != c.source || len(got.Others) != c.others {
			t.Errorf("%s: %s by %q beside %+v", name, got.Verdict, source, got.Others)
		}
		if got.Verdict == muster.GradeLow && source == muster.SourceTarget {
			f := analysis.Findings([]analysis.Node{nodes[0].Node}, list, nil)
			if len(f) != 1 || f[0].Chance != nil || !strings.Contains(f[0].Text, "is promised") || !(*f[0].Loss > 0) {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// Pairs are promised things, too: to both ends of one class.
func TestReferFabric(t *testing.T) {
	t.Parallel()
	promises, err := analysis.ParseTargets("x pair.bandwidth 1GB/s distance=rack")
	if err != nil {
		t.Fatal(err)
	}
	nodes := []analysis.Candidate{{Node: analysis.Node{Class: "x"}}, {Node: analysis.Node{Class: "x"}}, {Node: analysis.Node{Class: "y"}}}
	judged := func() analysis.Judged {
		return analysis.Judged{Metric: muster.Metric{
			Name: "pair.bandwidth", Distance: "rack", Median: 0.5e9, Interval: &muster.Interval{Low: 0.4e9, High: 0.6e9, Level: 0.96}, Verdict: muster.GradeUnknown,
		}}
	}
	f := analysis.FabricJudged{
		Links: []analysis.JudgedLink{{Pair: analysis.Pair{A: 0, B: 1}, Judged: judged()}, {Pair: analysis.Pair{A: 1, B: 2}, Judged: judged()}},
		Tiers: []analysis.JudgedTier{{Distance: analysis.SameRack, Judged: judged()}},
	}
	analysis.ReferFabric(nodes, &f, promises)
	if f.Links[0].Metric.Verdict != muster.GradeLow || f.Links[1].Metric.Verdict != muster.GradeUnknown || f.Tiers[0].Metric.Verdict != muster.GradeUnknown {
		t.Errorf("%+v", f)
	}
	analysis.ReferFabric(nodes[:2], &f, promises)
	if f.Tiers[0].Metric.Verdict != muster.GradeLow {
		t.Errorf("%+v", f.Tiers)
	}
}
