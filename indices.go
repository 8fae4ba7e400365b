package muster

import (
	"math"
	"slices"
	"strings"
)

// IndexFamilies are the families of metrics that have an index: names without the
// member. Each member is a small program on one core.
func IndexFamilies() []string { return []string{"core.int", "core.mem", "core.fp"} }

// Indices sums up families of small programs in one figure each: the geometric mean of
// their medians, in their unit. Its interval would be none that holds with a known
// chance, so there is none; Min and Max are the geometric means of the extremes. Its
// reference is the same of theirs, if each has one, and its verdict the gravest of
// theirs; without a reference it is neither good nor low.
//
// A family with fewer than two members, or with a figure that has no logarithm, has none.
func Indices(metrics []Metric) []Metric {
	var out []Metric
	for _, family := range IndexFamilies() {
		if m, ok := index(metrics, family); ok {
			out = append(out, m)
		}
	}
	return out
}

func index(metrics []Metric, family string) (Metric, bool) {
	out := Metric{Name: family, Verdict: GradeUnknown}
	var medians, mins, maxs, references []float64
	var grades []Grade
	var sources []string
	for _, m := range metrics {
		if !strings.HasPrefix(m.Name, family+".") {
			continue
		}
		if out.Launches == 0 {
			out.Unit, out.Less, out.Threads, out.Launches = m.Unit, m.Less, m.Threads, m.Launches
		}
		out.Launches = min(out.Launches, m.Launches)
		medians, mins, maxs = append(medians, m.Median), append(mins, m.Min), append(maxs, m.Max)
		grades = append(grades, m.Verdict)
		if r := m.Reference; r != nil && r.Source != SourcePeak {
			references = append(references, r.Value)
			if !slices.Contains(sources, string(r.Source)) {
				sources = append(sources, string(r.Source))
			}
		}
	}
	n := len(medians)
	var ok [3]bool
	out.Median, ok[0] = geometric(medians)
	out.Min, ok[1] = geometric(mins)
	out.Max, ok[2] = geometric(maxs)
	if n < 2 || ok != [3]bool{true, true, true} || out.Launches < 1 {
		return Metric{}, false
	}
	// A mean is rounded: three means of the same figures are the same.
	out.Min, out.Max = min(out.Min, out.Median), max(out.Max, out.Median)
	if value, known := geometric(references); known && len(references) == n {
		slices.Sort(sources)
		out.Reference = &Reference{Value: value, Source: Source(sources[0]), Text: "the geometric mean of those of its members, by " + strings.Join(sources, ", ")}
	}
	out.Verdict = Overall(grades...)
	if out.Reference == nil && (out.Verdict == GradePass || out.Verdict == GradeLow) {
		out.Verdict = GradeUnknown
	}
	return out, true
}

// geometric is the geometric mean; false if there is none.
func geometric(values []float64) (float64, bool) {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	mean := math.Exp(sum / float64(len(values)))
	wrong := slices.ContainsFunc(values, func(v float64) bool { return !(v > 0) || math.IsInf(v, 0) })
	return mean, len(values) > 0 && !wrong && mean > 0 && !math.IsInf(mean, 0)
}
