package muster_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
)

func member(name string, median float64, verdict muster.Grade, reference float64, source muster.Source) muster.Metric {
	m := muster.Metric{Name: name, Unit: "op/s", Threads: 1, Launches: 6, Median: median, Min: median / 2, Max: median * 2, Verdict: verdict}
	if reference > 0 {
		m.Reference = &muster.Reference{Value: reference, Source: source}
	}
	return m
}

func TestIndices(t *testing.T) {
	t.Parallel()
	list := []muster.Metric{
		member("core.int.sort", 2e6, muster.GradePass, 1e6, muster.SourcePeers), member("core.int.crc", 8e6, muster.GradeLow, 4e6, muster.SourceHistory),
		member("core.fp.fft", 3e9, muster.GradePass, 3e9, muster.SourcePeers), member("core.fp.lu", 3e9, muster.GradePass, 0, ""),
		member("core.mem.copy", 5e9, muster.GradePass, 0, ""), // alone
		member("core.integer", 1, muster.GradePass, 0, ""), member("mix.O3", 1, muster.GradePass, 0, ""),
	}
	got := muster.Indices(list)
	if len(got) != 2 || got[0].Name != "core.int" || got[1].Name != "core.fp" {
		t.Fatalf("%+v", got)
	}
	i, f := got[0], got[1]
	if math.Abs(i.Median-4e6) > 1 || math.Abs(i.Min-2e6) > 1 || math.Abs(i.Max-8e6) > 1 || i.Verdict != muster.GradeLow || i.Reference == nil ||
		math.Abs(i.Reference.Value-2e6) > 1 || i.Unit != "op/s" || i.Threads != 1 || i.Launches != 6 || i.Interval != nil {
		t.Errorf("%+v, %+v", i, i.Reference)
	}
	if math.Abs(f.Median-3e9) > 1 || f.Reference != nil || f.Verdict != muster.GradeUnknown {
		t.Errorf("%+v", f)
	}
	list[0].Median = 0
	if got := muster.Indices(list); len(got) != 1 || got[0].Name != "core.fp" {
		t.Errorf("of nothing: %+v", got)
	}
}

// Whatever is measured, an index is one that a certificate may hold, and between the
// smallest and the largest of its members.
func TestIndicesProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []muster.Metric
		low, high := math.Inf(1), 0.0
		for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "n")] {
			v := rapid.Float64Range(0, 1e300).Draw(t, name)
			m := member("core.mem."+name, v, rapid.SampledFrom(muster.Grades()).Draw(t, "verdict"), rapid.Float64Range(0, 1e12).Draw(t, "reference"), muster.SourcePeers)
			m.Max = v
			low, high = min(low, v), max(high, v)
			list = append(list, m)
		}
		for _, m := range muster.Indices(list) {
			if m.Min > m.Median || m.Median > m.Max || m.Median < low*(1-1e-9) || m.Median > high*(1+1e-9) || math.IsNaN(m.Median) {
				t.Fatalf("%+v of %g to %g", m, low, high)
			}
			if judged := m.Verdict == muster.GradePass || m.Verdict == muster.GradeLow; judged && m.Reference == nil {
				t.Fatalf("%+v", m)
			}
		}
	})
}
