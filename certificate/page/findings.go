package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// mostFindings are told at once; the rest can be unfolded.
const mostFindings = 12

// finding is one finding in words.
type finding struct {
	Where  string // which node, link or tier
	What   string // which metric
	Figure string // what was seen, and what is normal
	Loss   string
	Sure   string // how sure that is
	Cause  string
	Class  string
	Sign   string
	sort   float64
}

func findings(c muster.Certificate, nodes []muster.Certificate) []finding {
	units := map[string]string{}
	for _, n := range append([]muster.Certificate{c}, nodes...) {
		for _, m := range n.Metrics {
			units[m.Name] = m.Unit
		}
		if n.Pairs != nil {
			for _, m := range n.Pairs.Metrics {
				units[m.Name] = m.Unit
			}
		}
	}
	var out []finding
	for _, f := range c.Findings {
		out = append(out, tell(f, units))
	}
	slices.SortStableFunc(out, func(a, b finding) int {
		return cmp.Or(cmp.Compare(rank(a.Class), rank(b.Class)), cmp.Compare(b.sort, a.sort))
	})
	out = gathered(out)
	// One cause may be behind many figures of a node: it is said once.
	told := map[[2]string]bool{}
	for i := range out {
		if k := [2]string{out[i].Where, out[i].Cause}; told[k] {
			out[i].Cause = ""
		} else {
			told[k] = true
		}
	}
	return out
}

// gathered puts findings together that tell the same of one place by several sizes
// or numbers of threads: the gravest speaks for all.
func gathered(list []finding) []finding {
	type key struct{ where, what, class string }
	told := map[key]bool{}
	var out []finding
	for _, f := range list {
		k := key{f.Where, f.What, f.Class}
		if !told[k] {
			told[k] = true
			out = append(out, f)
		}
	}
	return out
}

func rank(class string) int {
	return slices.Index([]string{"wrong", "low", "unstable", differs}, class)
}

func tell(f muster.Finding, units map[string]string) finding {
	out := finding{Class: "low", Sign: gradeSign(muster.GradeLow), Cause: f.Cause}
	switch {
	case f.Node != "" && f.Peer != "":
		out.Where = f.Node + " – " + f.Peer
	case f.Node != "":
		out.Where = f.Node
	case f.Distance != "":
		out.Where = "all pairs " + apart(f.Distance)
	default:
		out.Where = "the cluster"
	}
	if f.Metric != "" {
		out.What = aboutMetric(f.Metric).Title
	}
	switch f.Code {
	case "unstable":
		out.Class, out.Sign = "unstable", gradeSign(muster.GradeUnstable)
		out.Figure = "varies too much from launch to launch to say how fast it is"
		return out
	case muster.FindingConditionsDiffer:
		return differing(f)
	case "wrong-result":
		out.Class, out.Sign, out.Figure = "wrong", "✗", "calculated a wrong result"
	}
	unit, known := units[f.Metric]
	if !known {
		unit = unitOf(f.Metric)
	}
	if f.Seen != nil && f.Expected != nil {
		out.Figure = fmt.Sprintf("%s, where %s is normal", human(*f.Seen, unit), human(*f.Expected, unit))
	}
	if out.Figure == "" {
		out.Figure = strings.TrimSuffix(f.Text, ".")
	}
	if f.Loss != nil && *f.Loss > 0 {
		out.Loss = percent(*f.Loss) + " of the speed is missing"
		out.sort = *f.Loss
	}
	out.Sure = sure(f)
	return out
}

// sure says how sure a finding is.
func sure(f muster.Finding) string {
	var list []string
	if f.Confirmed {
		list = append(list, "Seen again alone and against good partners.")
	} else if strings.HasPrefix(f.Code, "slow-") {
		list = append(list, "A suspicion: it was not measured again alone.")
	}
	if f.Chance != nil {
		switch p := *f.Chance; {
		case p < 1e-6:
			list = append(list, "By chance alone it would be seen less than once in a million times.")
		case p < 0.5:
			list = append(list, fmt.Sprintf("By chance alone something like it would be seen %s.", odds(p)))
		}
	}
	return strings.Join(list, " ")
}

// odds is a small probability in words.
func odds(p float64) string {
	n := 1 / p
	switch {
	case n >= 1e4:
		return fmt.Sprintf("once in %.0f,000 times", n/1000)
	case n >= 1000:
		return fmt.Sprintf("once in %d,%03d times", int(n)/1000, int(n)%1000/100*100)
	case n >= 20:
		return fmt.Sprintf("once in %.0f times", n)
	}
	return fmt.Sprintf("in %s of cases", percent(p))
}

// unitOf is the unit of metrics of pairs, whose figures have none.
func unitOf(metric string) string {
	switch {
	case strings.HasSuffix(metric, "latency"), strings.HasPrefix(metric, "noise."):
		return "s"
	case strings.HasPrefix(metric, "pair."), strings.HasPrefix(metric, "ring."), strings.HasPrefix(metric, "stream."), strings.HasPrefix(metric, "io."), metric == "alltoall":
		return "B/s"
	case metric == "dgemm", strings.HasPrefix(metric, "mix."):
		return "flop/s"
	case strings.HasPrefix(metric, "core."):
		return "op/s"
	}
	return ""
}

// limit is the smallest defect of one figure that could have been seen.
type limit struct{ What, Share string }

// limits say what a good verdict does not say: how much could be missing, and what
// could not be compared at all.
func limits(list []figure) (out []limit, uncompared []string) {
	for _, f := range list {
		var shares []float64
		for _, r := range f.Rows {
			if r.Detectable != nil {
				shares = append(shares, *r.Detectable)
			}
		}
		if len(shares) > 0 {
			out = append(out, limit{f.Label(), percent(middle(shares))})
		}
		if f.grade() == muster.GradeUnknown {
			uncompared = append(uncompared, f.Label())
		}
	}
	return out, uncompared
}

// differs is the class of findings that are of no figure.
const differs = "differ"

// differing is a condition that nodes do not have in common.
func differing(f muster.Finding) finding {
	name, part, _ := strings.Cut(f.Condition, ".")
	out := finding{Class: differs, Sign: "≠", Where: conditionName(name), Figure: "not the same on all nodes"}
	if part != "" {
		out.Where += ", " + part
	}
	var words []string
	for _, v := range f.Values {
		words = append(words, v.Value+" on "+v.Nodes)
	}
	if len(words) > 0 {
		out.Figure = strings.Join(words, "; ")
	}
	return out
}
