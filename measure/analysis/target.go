package analysis

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/suggest"
)

// Target is what a site says that machines of a class reach.
type Target struct {
	Class  string // "*": any
	Metric string
	// Size, Threads and Distance say which figure of that name; 0 and "" are any.
	Size     int64
	Threads  int
	Distance Distance
	// Value is in the unit of the metric: at least, or at most where less is better.
	Value float64
	// Tolerance is the share by which a figure may be worse.
	Tolerance float64
}

// Targets are all of a site. Of several that fit, the one that says most of the
// figure counts.
type Targets []Target

// Bounds of a site's performance targets.
const (
	mostTargets      = 4096
	defaultTolerance = 0.05
)

// ParseTargets reads targets, one in each line:
//
//	# class   metric          value
//	epyc-16   stream.triad    300GB/s    threads=16 tolerance=5%
//	*         pair.latency    8us        distance=rack
//
// Values have the unit of the metric, with or without a prefix (k, M, G, T, m, u,
// n). Without a tolerance it is 5 %. The error is EInvalid and has a problem for
// each line that is wrong.
func ParseTargets(text string) (Targets, error) {
	var list Targets
	var problems []muster.Problem
	at := map[Target]int{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		wrong := func(format string, args ...any) {
			if len(problems) < mostProblems {
				problems = append(problems, muster.Problem{Field: fmt.Sprintf("line %d", n), Message: fmt.Sprintf(format, args...)})
			}
		}
		p, err := parseTarget(words)
		if err != nil {
			wrong("%v", err)
			continue
		}
		same := p
		same.Value, same.Tolerance = 0, 0
		if first, ok := at[same]; ok {
			wrong("is the same as line %d", first)
			continue
		}
		if at[same] = n; len(list) == mostTargets {
			wrong("is one too many: %d targets are read", mostTargets)
			break
		}
		list = append(list, p)
	}
	if len(problems) > 0 {
		e := muster.Errorf(muster.EInvalid, "the performance targets cannot be read").
			WithHint("write in each line: CLASS METRIC VALUE [size=1MiB] [threads=4] [distance=%s] [tolerance=5%%]", distanceNames("|"))
		return nil, e.Listing(problems)
	}
	return list, nil
}

func parseTarget(words []string) (Target, error) {
	if len(words) < 3 {
		return Target{}, fmt.Errorf("has %d words, and needs class, metric and value", len(words))
	}
	p := Target{Class: words[0], Metric: words[1], Tolerance: defaultTolerance}
	unit, ok := MetricUnit(p.Metric)
	if !ok {
		return p, fmt.Errorf("there is no metric %.64q%s", p.Metric, didYouMean(p.Metric))
	}
	var err error
	if p.Value, err = parseQuantity(words[2], unit); err != nil {
		return p, err
	}
	for _, w := range words[3:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "size":
			p.Size, err = parseBytes(value)
		case "threads":
			if p.Threads, err = strconv.Atoi(value); err != nil || p.Threads < 1 {
				err = fmt.Errorf("threads is %.32q, no number of threads", value)
			}
		case "distance":
			p.Distance = Distance(value)
			if !slices.Contains(Distances(), p.Distance) {
				err = fmt.Errorf("distance is %.32q, and none of %s", value, distanceNames(", "))
			}
		case "tolerance":
			var percent float64
			percent, err = strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
			if p.Tolerance = percent / 100; err != nil || !strings.HasSuffix(value, "%") || !(percent >= 0 && percent < 100) {
				err = fmt.Errorf("tolerance is %.32q, and not from 0%% to less than 100%%", value)
			}
		default:
			err = fmt.Errorf("there is no %.32q%s", name, meant(suggest.Of(name, []string{"size", "threads", "distance", "tolerance"})))
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

func didYouMean(metric string) string {
	var names []string
	for _, m := range metricUnits() {
		if !strings.HasSuffix(m.name, "*") { // every figure has a target by its name
			names = append(names, m.name)
		}
	}
	return meant(suggest.Of(metric, names))
}

func meant(word string) string {
	if word == "" {
		return ""
	}
	return ": did you mean " + word + "?"
}

var quantity = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]{1,2})?)([kMGTmunp]?)([a-z]+/s|B/s|s|%)?$`)

// parseQuantity reads a value in a unit: 300GB/s, 8us, 1.5Tflop/s, 2%, 0.02.
func parseQuantity(text, unit string) (float64, error) {
	bad := fmt.Errorf("the value %.64q is none in %s", text, unit)
	m := quantity.FindStringSubmatch(text)
	if m == nil {
		return 0, bad
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, bad
	}
	scale := map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}[m[2]]
	switch {
	case unit == "1" && m[2] == "" && m[3] == "%":
		scale = 0.01
	case unit == "1" && m[2]+m[3] == "":
	case unit != "1" && m[3] == unit:
	default:
		return 0, bad
	}
	if v *= scale; !(v > 0 && v < 1e30) {
		return 0, bad
	}
	return v, nil
}

// parseBytes reads a size: 8, 64KiB, 1MiB.
func parseBytes(text string) (int64, error) {
	digits, shift := text, 0
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if d, ok := strings.CutSuffix(text, suffix); ok {
			digits, shift = d, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(digits, "B"), 10, 64)
	if err != nil || n < 1 || n > 1<<50>>shift {
		return 0, fmt.Errorf("size is %.32q, and not like 8, 64KiB or 1MiB", text)
	}
	return n << shift, nil
}

// Find is the target of a figure; false if there is none.
func (list Targets) Find(class string, m muster.Metric) (Target, bool) {
	var found Target
	best := -1
	for _, p := range list {
		if p.Metric != m.Name || p.Class != "*" && p.Class != class || p.Size != 0 && p.Size != m.Size ||
			p.Threads != 0 && p.Threads != m.Threads || p.Distance != "" && string(p.Distance) != m.Distance {
			continue
		}
		says := 0
		for i, it := range []bool{p.Threads != 0, p.Size != 0, p.Distance != "", p.Class != "*"} {
			if it {
				says += 1 << i
			}
		}
		if says > best {
			found, best = p, says
		}
	}
	return found, best >= 0
}

// judge compares a figure with the target. The end of its interval that is
// the better one counts: what could still be true is not held against it. Without
// an interval nothing is said.
func (p Target) judge(m muster.Metric) muster.Grade {
	switch {
	case m.Interval == nil:
		return muster.GradeUnknown
	case m.Less && m.Interval.Low > p.Value*(1+p.Tolerance), !m.Less && m.Interval.High < p.Value*(1-p.Tolerance):
		return muster.GradeLow
	}
	return muster.GradePass
}

// text says where it comes from.
func (p Target) text() string {
	of := "class " + p.Class
	if p.Class == "*" {
		of = "every class"
	}
	return fmt.Sprintf("the site's target for %s, with a tolerance of %.3g %%", of, 100*p.Tolerance)
}

// withTarget adds the target, and what follows from it: low is who misses a
// target, whatever else it is compared with; and where there is nothing else, who
// keeps it passes.
func withTarget(j *Judged, class string, promises Targets) {
	m := &j.Metric
	p, ok := promises.Find(class, *m)
	if !ok {
		return
	}
	ref := muster.Reference{Value: p.Value, Source: muster.SourceTarget, Text: p.text()}
	grade := p.judge(*m)
	takes := grade == muster.GradeLow && m.Verdict != muster.GradeLow || grade == muster.GradePass && m.Verdict == muster.GradeUnknown
	if !takes && m.Reference != nil {
		m.Others = append(m.Others, ref)
		return
	}
	if m.Reference != nil {
		m.Others = append(m.Others, *m.Reference)
	}
	m.Reference = &ref
	j.Deficit = 1 - m.Median/p.Value
	if m.Less {
		j.Deficit = 1 - p.Value/m.Median
		if m.Median == 0 {
			j.Deficit = math.NaN() // better than anything that can be promised
		}
	}
	if takes { // by no chance, but by what was promised
		m.Verdict, j.P, j.Adjusted = grade, math.NaN(), math.NaN()
	}
}
