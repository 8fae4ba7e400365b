package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/nodeset"
)

// compared condition of the nodes of one cluster: its name, and what it is in words that
// are the same where it is the same; "" where that is not known.
type likeness struct {
	name string
	of   func(muster.TestEnvironment) string
}

// mostValues of a condition are told of one finding, and mostValue bytes of each.
const (
	mostValues = 8
	mostValue  = 160
)

// likenesses are what the nodes of a cluster should have in common. Numbers of
// processors are not among them, nor what was measured with: slices of one host have
// other processors each, and neighbours that come and go.
func likenesses() []likeness {
	number := func(n int64) string {
		if n <= 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	clock := func(f func(muster.ProcessorClock) string) func(muster.TestEnvironment) string {
		return func(c muster.TestEnvironment) string {
			if c.Clock == nil {
				return ""
			}
			return f(*c.Clock)
		}
	}
	megahertz := func(hz int64) string { // what is measured at each start differs a little
		if hz <= 0 {
			return ""
		}
		return fmt.Sprintf("%d MHz", (hz+5_000_000)/10_000_000*10)
	}
	pages := func(f func(muster.HugePages) string) func(muster.TestEnvironment) string {
		return func(c muster.TestEnvironment) string {
			if c.Pages == nil {
				return ""
			}
			return f(*c.Pages)
		}
	}
	return []likeness{
		{"processor", func(c muster.TestEnvironment) string { return c.Processor }},
		{"sockets", func(c muster.TestEnvironment) string { return number(int64(c.Sockets)) }},
		{"cores", func(c muster.TestEnvironment) string { return number(int64(c.Cores)) }},
		{"threads", func(c muster.TestEnvironment) string { return number(int64(c.Threads)) }},
		{"memory", func(c muster.TestEnvironment) string { return gibibytes(c.Memory) }},
		{"numa", numa},
		{"cache", func(c muster.TestEnvironment) string { return number(c.Cache) }},
		{"flags", func(c muster.TestEnvironment) string { return strings.Join(c.Flags, " ") }},
		{"microcode", func(c muster.TestEnvironment) string { return c.Microcode }},
		{"firmware", func(c muster.TestEnvironment) string { return c.Firmware }},
		{"smt", func(c muster.TestEnvironment) string { return c.SMT }},
		{"clock.governor", clock(func(k muster.ProcessorClock) string { return k.Governor })},
		{"clock.driver", clock(func(k muster.ProcessorClock) string { return k.Driver })},
		{"clock.min", clock(func(k muster.ProcessorClock) string { return megahertz(k.Min) })},
		{"clock.max", clock(func(k muster.ProcessorClock) string { return megahertz(k.Max) })},
		{"clock.base", clock(func(k muster.ProcessorClock) string { return megahertz(k.Base) })},
		{"clock.boost", clock(func(k muster.ProcessorClock) string {
			if k.Boost == nil {
				return ""
			}
			return map[bool]string{true: "on", false: "off"}[*k.Boost]
		})},
		{"clock_source", func(c muster.TestEnvironment) string { return c.ClockSource }},
		{"huge_pages.transparent", pages(func(p muster.HugePages) string { return p.Transparent })},
		{"huge_pages.reserved", pages(func(p muster.HugePages) string { return fmt.Sprintf("%d of %d bytes", p.Reserved, p.Size) })},
		{"virtualization", func(c muster.TestEnvironment) string { return c.Virtualization }},
		{"vm", func(c muster.TestEnvironment) string { return c.VM.String() }},
		{"hypervisor", func(c muster.TestEnvironment) string { return c.Hypervisor }},
		{"kernel", func(c muster.TestEnvironment) string { return c.Kernel }},
		{"kernel_options", options},
		{"mtu", func(c muster.TestEnvironment) string { return strings.Join(c.MTU, ", ") }},
		{"image", func(c muster.TestEnvironment) string { return string(c.Image) }},
		{"blas", func(c muster.TestEnvironment) string {
			if c.BLAS == nil {
				return ""
			}
			return strings.TrimSpace(c.BLAS.File + " " + c.BLAS.Config)
		}},
		{"mpi", func(c muster.TestEnvironment) string { return c.MPI }},
		{"transport", func(c muster.TestEnvironment) string { return c.Transport }},
		{"scratch", func(c muster.TestEnvironment) string {
			if c.Scratch == nil {
				return ""
			}
			return fmt.Sprintf("%s at %s", c.Scratch.Type, c.Scratch.Path)
		}},
		{"tools", func(c muster.TestEnvironment) string { return strings.Join(c.Tools, ", ") }},
	}
}

// options tells a command line without any of these from one that is not known: a
// node that says what it takes the time from says that, too.
func options(c muster.TestEnvironment) string {
	if len(c.Options) == 0 && c.ClockSource != "" {
		return "none"
	}
	return strings.Join(c.Options, " ")
}

// gibibytes is memory as people count it: kernels keep a little more or less of it.
func gibibytes(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 8<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d GiB", (n+1<<29)>>30)
}

// numa is the shape: how many hardware threads and how much memory each node has.
func numa(c muster.TestEnvironment) string {
	var parts []string
	for _, n := range c.NUMA {
		part := fmt.Sprintf("%d threads", len(n.CPUs))
		if m := gibibytes(n.Memory); m != "" {
			part += " with " + m
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// Differences are the conditions that the nodes of a cluster do not have in common, one
// finding each, with what it is where; the value that most nodes have comes first. What
// is not known of a node is no difference. They change no verdict: they may be meant,
// and what they cost is in the figures.
func Differences(nodes []Candidate) []muster.Finding {
	var list []muster.Finding
	for _, l := range likenesses() {
		var values []string
		who := map[string][]string{}
		for _, n := range nodes {
			v := l.value(n.Conditions)
			if v == "" {
				continue
			}
			if who[v] == nil {
				values = append(values, v)
			}
			who[v] = append(who[v], n.Name)
		}
		if len(values) < 2 {
			continue
		}
		slices.SortStableFunc(values, func(a, b string) int { return cmp.Compare(len(who[b]), len(who[a])) })
		f := muster.Finding{Code: muster.FindingConditionsDiffer, Condition: l.name}
		var words []string
		for i, v := range values {
			if i == mostValues {
				words = append(words, fmt.Sprintf("%d other values elsewhere", len(values)-i))
				break
			}
			set := nodeset.Fold(who[v])
			f.Values = append(f.Values, muster.FindingValue{Value: v, Nodes: set})
			words = append(words, fmt.Sprintf("%s on %s", v, set))
		}
		f.Text = fmt.Sprintf("%s is not the same on all nodes: %s", l.name, strings.Join(words, "; "))
		list = append(list, f)
	}
	return list
}

// value is bounded: it is a node's word.
func (l likeness) value(c muster.TestEnvironment) string { return clipTo(l.of(c), mostValue) }

// differsFromMost reports whether a node has another value than most, or if as many have
// each.
func differsFromMost(n Candidate, f muster.Finding) bool {
	for _, l := range likenesses() {
		if l.name == f.Condition {
			v := l.value(n.Conditions)
			return v != "" && len(f.Values) > 0 && v != f.Values[0].Value
		}
	}
	return false
}
