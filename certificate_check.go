package muster

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	certificateID = regexp.MustCompile(`^pc-[0-9a-z]{10}$`)
	contentID     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	metricName    = regexp.MustCompile(`^[a-z][A-Za-z0-9]*([.-][A-Za-z0-9]+)*$`)
)

// Valid reports whether the ID has the form of one.
func (id CertificateID) Valid() bool { return certificateID.MatchString(string(id)) }

// Valid reports whether the digest has the form of one.
func (d Digest) Valid() bool { return contentID.MatchString(string(d)) }

// Check finds what a certificate must not say, all at once: a figure outside
// its own extremes, a pass with a low metric, "certified" of what was shared.
// The error is EInvalid.
func (c Certificate) Check() error {
	p := &problems{}
	c.checkNames(p)
	c.checkTimes(p)
	c.checkStanding(p)
	checkMetrics(p, "metrics", c.Metrics)
	checkMetrics(p, "indices", c.Indices)
	p.when(c.Kind == CertifiesCluster && len(c.Indices) > 0, "indices", "is of nodes only")
	c.checkNodes(p)
	c.checkPairs(p)
	checkSweeps(p, c.Sweeps)
	c.checkUse(p)
	for i, f := range c.Findings {
		field := fmt.Sprintf("findings[%d]", i)
		p.because(ReasonRequired, f.Code == "", field+".code", "is missing")
		p.because(ReasonRequired, f.Text == "", field+".text", "is missing")
		for k, v := range f.Values {
			p.when(v.Nodes == "" || f.Condition == "", fmt.Sprintf("%s.values[%d]", field, k), "has no nodes, or nothing says of what it is")
		}
		p.because(ReasonRequired, f.CauseCode != "" && f.Cause == "", field+".cause", "is missing, and its code is %s", f.CauseCode)
		for name, v := range map[string]*float64{"seen": f.Seen, "expected": f.Expected, "loss": f.Loss, "chance": f.Chance} {
			p.when(v != nil && !finite(*v), field+"."+name, "is not a finite number")
		}
		p.when(f.Chance != nil && (*f.Chance < 0 || *f.Chance > 1), field+".chance", "is not between 0 and 1")
	}
	if t := c.Conditions.Topology; t != nil {
		if err := t.Check(); err != nil {
			p.when(true, "conditions.topology", "%v", err)
		}
	}
	if s := c.Schedule; s != nil {
		p.when(s.Launches < 1, "schedule.launches", "is less than 1")
		p.when(!share(s.Level) || !share(s.FalseFindings), "schedule", "has a probability that is not between 0 and 1")
	}
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int { return strings.Compare(a.Field, b.Field) })
	e := Errorf(EInvalid, "the certificate %s cannot be as it is", c.ID).WithHint("this is a bug in the program that made it")
	return e.Listing(p.list)
}

func (c Certificate) checkNames(p *problems) {
	p.when(c.Version < 1 || c.Version > CertificateVersion, "version", "is not between 1 and %d", CertificateVersion)
	p.when(!c.ID.Valid(), "id", "is not pc- and ten characters")
	p.because(ReasonRequired, c.Cluster == "", "cluster", "is missing")
	p.when(!contentID.MatchString(string(c.Image)), "image", "is not a content ID")
	for i, id := range c.Supersedes {
		p.when(!id.Valid(), fmt.Sprintf("supersedes[%d]", i), "is not pc- and ten characters")
		p.when(id == c.ID, fmt.Sprintf("supersedes[%d]", i), "is the certificate itself")
	}
	switch c.Kind {
	case CertifiesNode:
		p.because(ReasonRequired, c.Node == "", "node", "is missing")
		p.because(ReasonRequired, c.Machine == "", "machine", "is missing")
		p.when(len(c.Nodes) > 0, "nodes", "is of clusters only")
	case CertifiesCluster:
		p.when(c.Node != "", "node", "is of nodes only")
		p.when(c.Machine != "", "machine", "is of nodes only")
		p.because(ReasonRequired, len(c.Nodes) == 0, "nodes", "is missing")
	default:
		p.when(true, "kind", "is neither node nor cluster")
	}
	p.when(c.Level != ValidateQuick && c.Level != ValidateFull, "level", "is neither quick nor full")
}

func (c Certificate) checkTimes(p *problems) {
	for name, t := range map[string]time.Time{"began": c.Began, "ended": c.Ended, "made": c.Made, "expires": c.Expires} {
		if name == "made" || name == "expires" {
			p.because(ReasonRequired, t.IsZero(), name, "is missing")
		}
		p.when(!plainTime(t), name, "is not in whole seconds of UTC")
	}
	p.when(!c.Made.Before(c.Expires), "expires", "is not after made")
	p.when(!c.Began.IsZero() && !c.Ended.IsZero() && c.Ended.Before(c.Began), "ended", "is before began")
	p.when(c.Ended.After(c.Made), "ended", "is after made")
}

// plainTime reports whether a time is the same before and after it was written.
func plainTime(t time.Time) bool {
	return t.Equal(t.Truncate(time.Second)) && t.Location() == time.UTC && t.Year() <= 9999
}

// checkStanding compares what is said of the whole with its parts.
func (c Certificate) checkStanding(p *problems) {
	p.when(c.Certified && len(c.Caveats) > 0, "certified", "is true, and there are caveats")
	p.because(ReasonRequired, !c.Certified && len(c.Caveats) == 0, "caveats", "is missing: nothing says why it is not certified")
	p.when(c.Certified && c.Conditions.Oversubscribed, "certified", "is true of an oversubscribed machine")
	p.when(c.Certified && c.Conditions.Shared, "certified", "is true of a shared machine")
	for i, v := range c.Caveats {
		p.when(v.Code == "" || v.Text == "", fmt.Sprintf("caveats[%d]", i), "has no code or no text")
	}
	for i, v := range c.Omitted {
		p.when(v.What == "" || v.Text == "", fmt.Sprintf("omitted[%d]", i), "does not say what or why")
	}
	p.when(!slices.Contains(Grades(), c.Verdict), "verdict", "is none")
	low := slices.ContainsFunc(c.Metrics, func(m Metric) bool { return m.Verdict == GradeLow }) ||
		slices.ContainsFunc(c.Nodes, func(n CertifiedNode) bool { return n.Verdict == GradeLow })
	p.when(low && c.Verdict != GradeLow, "verdict", "is %s, and a part is low", c.Verdict)
}

func (c Certificate) checkNodes(p *problems) {
	seen := map[string]bool{}
	for i, n := range c.Nodes {
		field := fmt.Sprintf("nodes[%d]", i)
		p.when(n.Node == "" || n.Machine == "", field, "has no name or no machine")
		p.because(ReasonGivenTwice, seen[n.Node] || seen[string(n.Certificate)], field, "stands twice")
		seen[n.Node], seen[string(n.Certificate)] = true, true
		p.when(!n.Certificate.Valid(), field+".certificate", "is not pc- and ten characters")
		p.when(!n.Digest.Valid(), field+".digest", "is not a digest")
		p.when(!slices.Contains(Grades(), n.Verdict), field+".verdict", "is none")
		p.when(c.Certified && !n.Certified, "certified", "is true, and of %s it is not", n.Node)
	}
}

func (c Certificate) checkPairs(p *problems) {
	if c.Pairs == nil {
		return
	}
	p.when(c.Pairs.Measured < 0 || c.Pairs.Measured > c.Pairs.Possible, "pairs.measured", "is not between 0 and possible")
	checkMetrics(p, "pairs.metrics", c.Pairs.Metrics)
	for i, f := range c.Pairs.Figures {
		field := fmt.Sprintf("pairs.figures[%d]", i)
		p.when(!metricName.MatchString(f.Metric), field+".metric", "is not the name of a metric")
		p.when(f.From == "" || f.To == "" || f.From == f.To, field, "is not between two nodes")
		p.when(!finite(f.Value), field+".value", "is not a finite number")
		p.when(!whole(f.Size), field+".size_bytes", "is not a size")
	}
}

func (c Certificate) checkUse(p *problems) {
	for i, u := range c.Use {
		field := fmt.Sprintf("use[%d]", i)
		known := u.Node == c.Node
		if c.Kind == CertifiesCluster {
			known = slices.ContainsFunc(c.Nodes, func(n CertifiedNode) bool { return n.Node == u.Node })
		}
		p.when(!known, field+".node", "is not what was measured")
		p.because(ReasonRequired, u.Start.IsZero(), field+".start", "is missing")
		p.when(!plainTime(u.Start), field+".start", "is not in whole seconds of UTC")
		p.when(!finite(u.Step) || u.Step <= 0, field+".step_seconds", "is not more than 0")
		p.because(ReasonRequired, len(u.CPU) == 0, field+".cpu", "is missing")
		for name, list := range map[string][]float64{"cpu": u.CPU, "user": u.User, "system": u.System, "wait": u.Wait} {
			p.when(slices.ContainsFunc(list, func(v float64) bool { return !finite(v) || v < 0 }), field+"."+name, "has a value that cannot be")
			p.when(len(list) > 0 && len(list) != len(u.CPU), field+"."+name, "has another number of steps than cpu")
		}
	}
}

func checkSweeps(p *problems, list []Sweep) {
	type key struct {
		metric, distance, over string
		size                   int64
		ranks                  int
	}
	seen := map[key]bool{}
	for i, s := range list {
		field := fmt.Sprintf("sweeps[%d]", i)
		k := key{s.Metric, s.Distance, s.Over, s.Size, s.Ranks}
		p.because(ReasonGivenTwice, seen[k], field, "stands twice")
		seen[k] = true
		p.when(!metricName.MatchString(s.Metric), field+".metric", "is not the name of a metric")
		p.because(ReasonRequired, s.Unit == "", field+".unit", "is missing")
		p.because(ReasonRequired, s.Over == "", field+".over", "is missing")
		p.because(ReasonRequired, len(s.Points) == 0, field+".points", "is missing")
		p.when(!whole(s.Size) || s.Ranks < 0, field, "has a size or ranks that cannot be")
		last := 0.0
		for k, v := range s.Points {
			field := fmt.Sprintf("%s.points[%d]", field, k)
			p.when(!finite(v.At) || v.At <= last, field+".at", "is not more than the one before")
			last = v.At
			p.when(v.Launches < 1 || v.Samples < v.Launches, field, "has fewer launches than 1, or fewer samples than launches")
			p.when(!finite(v.Min) || !finite(v.Max) || !(v.Min <= v.Median && v.Median <= v.Max), field+".median", "is not between min and max")
			p.when(!(v.Min <= v.Mean && v.Mean <= v.Max), field+".mean", "is not between min and max")
		}
	}
}

func checkMetrics(p *problems, list string, metrics []Metric) {
	type key struct {
		name, distance string
		size           int64
		threads        int
	}
	seen := map[key]bool{}
	for i, m := range metrics {
		field := fmt.Sprintf("%s[%d]", list, i)
		k := key{m.Name, m.Distance, m.Size, m.Threads}
		p.because(ReasonGivenTwice, seen[k], field, "stands twice")
		seen[k] = true
		p.when(!metricName.MatchString(m.Name), field+".name", "is not the name of a metric")
		p.because(ReasonRequired, m.Unit == "", field+".unit", "is missing")
		p.when(m.Launches < 1, field+".launches", "is less than 1")
		p.when(m.Samples != 0 && m.Samples < m.Launches, field+".samples", "is less than launches")
		p.when(!whole(m.Size) || m.Threads < 0, field, "has a size or threads that cannot be")
		p.when(!slices.Contains(Grades(), m.Verdict), field+".verdict", "is none")
		if !finite(m.Min) || !finite(m.Median) || !finite(m.Max) {
			p.when(true, field, "has a figure that is not a finite number")
			continue
		}
		p.when(m.Min > m.Median || m.Median > m.Max, field+".median", "is not between min and max")
		m.checkByLaunch(p, field+".by_launch")
		if v := m.Interval; v != nil {
			p.when(!(v.Low <= m.Median && m.Median <= v.High) || !finite(v.Low) || !finite(v.High), field+".interval", "does not hold the median")
			p.when(!(v.Level > 0 && v.Level < 1), field+".interval.level", "is not between 0 and 1")
		}
		if v := m.Reference; v != nil {
			p.when(!finite(v.Value) || v.Source == "", field+".reference", "has no finite value or no source")
		}
		for _, v := range m.Others {
			p.when(!finite(v.Value) || v.Source == "", field+".other_references", "have one with no finite value or no source")
		}
		if v := m.Spread; v != nil {
			p.when(!finite(v.Value) || v.Value < 0 || v.Source == "", field+".spread", "has no value that can be or no source")
		}
		p.when(m.Detectable != nil && (!finite(*m.Detectable) || *m.Detectable < 0), field+".detectable", "is not a fraction from 0 to 1")
		judged := m.Verdict == GradePass || m.Verdict == GradeLow
		p.because(ReasonRequired, judged && m.Reference == nil, field+".reference", "is missing, and the verdict is %s", m.Verdict)
		p.when(judged && m.Reference != nil && m.Reference.Source == SourcePeak, field+".reference", "is a theoretical peak, which nobody is judged by")
	}
}

// checkByLaunch compares the medians of launches with what is made of them.
func (m Metric) checkByLaunch(p *problems, field string) {
	if len(m.ByLaunch) == 0 {
		return
	}
	p.when(len(m.ByLaunch) != m.Launches, field, "has %d launches, and there were %d", len(m.ByLaunch), m.Launches)
	for _, v := range m.ByLaunch {
		if !(m.Min <= v && v <= m.Max) {
			p.when(true, field, "has a figure that is not between min and max")
			return
		}
	}
	sorted := slices.Sorted(slices.Values(m.ByLaunch))
	n := len(sorted)
	middle := sorted[(n-1)/2]/2 + sorted[n/2]/2
	p.when(math.Abs(middle-m.Median) > 1e-9*math.Abs(m.Median), field, "has another median")
}

// problems collects what is wrong.
type problems struct{ list []Problem }

func (p *problems) when(wrong bool, field, format string, args ...any) {
	p.because(ReasonBadValue, wrong, field, format, args...)
}

// because is when for another reason than a bad value.
func (p *problems) because(why Reason, wrong bool, field, format string, args ...any) {
	if wrong {
		p.list = append(p.list, Problem{Field: field, Reason: why, Message: fmt.Sprintf(format, args...)})
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// share allows 0, which is "not said".
func share(f float64) bool { return f >= 0 && f < 1 }

// whole reports whether a size survives as a JSON number everywhere.
func whole(n int64) bool { return n >= 0 && n <= 1<<53 }
