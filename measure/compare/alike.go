package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// condition is something that changes figures.
type condition struct {
	name string // as certificates call it
	// of is what it was, in words; empty if that is not known.
	of func(muster.Certificate) string
	// over is the same of several certificates, where it is not what they have.
	over func([]muster.Certificate) string
	// stops: figures under different ones are not compared. Others are noted.
	stops bool
	// always: they are not even if somebody asks for it, and not if it is unknown.
	always bool
	// concerns are the figures that it changes; nil: all.
	concerns func(name string, s scope) bool
	words    string // that say so
}

func (c condition) changes(name string, s scope) bool {
	return c.concerns == nil || c.concerns(name, s)
}

// conditions are all of them. docs/users/certificate.md has them in a table.
func conditions() []condition {
	text := func(f func(muster.TestEnvironment) string) func(muster.Certificate) string {
		return func(c muster.Certificate) string { return f(c.Conditions) }
	}
	number := func(f func(muster.TestEnvironment) int) func(muster.Certificate) string {
		return func(c muster.Certificate) string {
			if n := f(c.Conditions); n > 0 {
				return strconv.Itoa(n)
			}
			return ""
		}
	}
	between := func(name string, s scope) bool { return s != ofNode && !named(name, "net") }
	tools := func(name string, _ scope) bool { return named(name, "disk") || named(name, "net") }
	return []condition{
		{name: "certified", of: standing, stops: true, always: true},
		{name: "probe", of: text(probe), stops: true, always: true},
		{name: "provider", of: text(func(c muster.TestEnvironment) string { return c.Provider }), stops: true},
		{name: "processor", of: text(func(c muster.TestEnvironment) string { return c.Processor }), stops: true},
		{name: "sockets", of: number(func(c muster.TestEnvironment) int { return c.Sockets }), stops: true},
		{name: "cores", of: number(func(c muster.TestEnvironment) int { return c.Cores }), stops: true},
		{name: "threads", of: number(func(c muster.TestEnvironment) int { return c.Threads }), stops: true},
		{name: "numa", of: number(func(c muster.TestEnvironment) int { return len(c.NUMA) }), stops: true},
		{name: "shape", of: text(func(c muster.TestEnvironment) string { return c.Shape.String() }), stops: true},
		{name: "link_rate_bps", of: text(linkRate), stops: true, concerns: func(_ string, s scope) bool { return s != ofNode }, words: "between nodes"},
		{name: "cache", of: number(func(c muster.TestEnvironment) int { return int(c.Cache) }), stops: true},
		{name: "clock", of: text(clock), stops: true},
		{name: "huge_pages", of: text(pages), stops: true},
		{name: "virtualization", of: text(func(c muster.TestEnvironment) string { return c.Virtualization }), stops: true},
		{name: "vm", of: text(func(c muster.TestEnvironment) string { return c.VM.String() }), stops: true},
		{name: "hypervisor", of: text(func(c muster.TestEnvironment) string { return c.Hypervisor }), stops: true},
		{name: "pinning", of: text(func(c muster.TestEnvironment) string { return pinned(c.Pinning) }), stops: true},
		{name: "blas", of: text(blas), stops: true, concerns: func(name string, _ scope) bool { return named(name, "dgemm") || named(name, "hpl") }, words: "dgemm"},
		{name: "mpi", of: text(func(c muster.TestEnvironment) string { return c.MPI }), stops: true, concerns: between, words: "between nodes"},
		{name: "transport", of: text(func(c muster.TestEnvironment) string { return c.Transport }), stops: true, concerns: between, words: "between nodes"},
		{name: "scratch", of: text(scratch), stops: true, concerns: func(name string, _ scope) bool { return named(name, "disk") }, words: "disk"},
		{name: "tools", of: text(func(c muster.TestEnvironment) string { return strings.Join(c.Tools, ", ") }), stops: true, concerns: tools, words: "disk and net"},
		{name: "nodes", over: nodes, stops: true, concerns: func(_ string, s scope) bool { return s == ofWhole }, words: "the whole cluster"},
		{name: "distances", over: distances, stops: true, concerns: func(_ string, s scope) bool { return s == ofWhole }, words: "the whole cluster"},
		{name: "memory", of: number(func(c muster.TestEnvironment) int { return int(c.Memory) })},
		{name: "flags", of: text(func(c muster.TestEnvironment) string { return strings.Join(c.Flags, " ") })},
		{name: "kernel", of: text(func(c muster.TestEnvironment) string { return c.Kernel })},
		{name: "kernel_options", of: text(func(c muster.TestEnvironment) string { return strings.Join(c.Options, " ") })},
		{name: "clock_source", of: text(func(c muster.TestEnvironment) string { return c.ClockSource })},
		{name: "firmware", of: text(func(c muster.TestEnvironment) string { return c.Firmware })},
		{name: "microcode", of: text(func(c muster.TestEnvironment) string { return c.Microcode })},
		{name: "smt", of: text(func(c muster.TestEnvironment) string { return c.SMT })},
		{name: "mtu", of: text(func(c muster.TestEnvironment) string { return strings.Join(c.MTU, ", ") }), concerns: func(_ string, s scope) bool { return s != ofNode }, words: "between nodes"},
		{name: "image", of: func(c muster.Certificate) string { return string(c.Image) }},
		{name: "class", of: func(c muster.Certificate) string { return c.Class }},
		{name: "level", of: func(c muster.Certificate) string { return string(c.Level) }},
		{name: "neighbours", of: text(func(c muster.TestEnvironment) string {
			if c.Neighbours == nil {
				return ""
			}
			return strconv.Itoa(*c.Neighbours)
		})},
	}
}

// standing is whether figures are of hardware that nobody else used. Reports are
// not compared, not even with each other: what others did meanwhile is not known.
func standing(c muster.Certificate) string {
	if c.Certified {
		return "yes"
	}
	var why []string
	for _, v := range c.Caveats {
		why = append(why, v.Code)
	}
	return "no: " + strings.Join(why, ", ")
}

// linkRate is what links were held to. Without it they were held to nothing.
func linkRate(c muster.TestEnvironment) string {
	if c.LinkRate == 0 {
		return "none"
	}
	return strconv.FormatInt(c.LinkRate, 10)
}

func probe(c muster.TestEnvironment) string {
	if c.Probe == nil || c.Probe.Source == "" {
		return ""
	}
	return strings.TrimSpace(c.Probe.Source + " " + c.Probe.Compiler + " " + c.Probe.Flags)
}

func clock(c muster.TestEnvironment) string {
	k := c.Clock
	if k == nil {
		return ""
	}
	var words []string
	if k.Governor != "" {
		words = append(words, k.Governor)
	}
	if k.Max > 0 {
		words = append(words, fmt.Sprintf("up to %d MHz", k.Max/1_000_000))
	}
	if k.Boost != nil {
		words = append(words, map[bool]string{true: "boost", false: "no boost"}[*k.Boost])
	}
	return strings.Join(words, ", ")
}

func pages(c muster.TestEnvironment) string {
	if c.Pages == nil {
		return ""
	}
	return c.Pages.Transparent
}

func blas(c muster.TestEnvironment) string {
	if c.BLAS == nil {
		return ""
	}
	return strings.TrimSpace(c.BLAS.File + " " + c.BLAS.Config)
}

// scratch is what a file system is like. Where it is mounted changes nothing.
func scratch(c muster.TestEnvironment) string {
	s := c.Scratch
	if s == nil || s.Type == "" {
		return ""
	}
	words := []string{s.Type}
	if s.Memory {
		words = append(words, "in memory")
	}
	if !s.Direct {
		words = append(words, "through the page cache")
	}
	return strings.Join(words, ", ")
}

// pinned is how many processors each rank had: which ones they were differs from
// one slice of a host to the next. What is no list of processors stays as it is.
func pinned(text string) string {
	var words []string
	for _, rank := range strings.Fields(strings.TrimPrefix(text, "cpus ")) {
		n := 0
		for _, part := range strings.Split(rank, ",") {
			low, high, ok := strings.Cut(part, "-")
			if !ok {
				high = low
			}
			a, err := strconv.Atoi(low)
			b, wrong := strconv.Atoi(high)
			if err != nil || wrong != nil || b < a {
				return text
			}
			n += b - a + 1
		}
		if w := strconv.Itoa(n); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return ""
	}
	slices.Sort(words)
	return strings.Join(words, ", ") + " a rank"
}

// nodes is how many took part.
func nodes(certs []muster.Certificate) string {
	n := 0
	for _, c := range certs {
		if c.Kind == muster.CertifiesCluster {
			return strconv.Itoa(len(c.Nodes))
		}
		n++
	}
	return strconv.Itoa(n)
}

// distances are how far nodes that were measured together are apart; empty if that
// is not known.
func distances(certs []muster.Certificate) string {
	var words []string
	for _, c := range certs {
		if c.Kind != muster.CertifiesCluster || c.Pairs == nil {
			continue
		}
		for _, m := range c.Pairs.Metrics {
			if m.Distance != "" && !slices.Contains(words, m.Distance) {
				words = append(words, m.Distance)
			}
		}
		break
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// value is a condition over several certificates: what all of them have, or all
// that they have. Nodes know better than the manifest that sums them up.
func (c condition) value(certs []muster.Certificate) string {
	if c.over != nil {
		return c.over(certs)
	}
	var words []string
	for _, kind := range []muster.CertificateKind{muster.CertifiesNode, muster.CertifiesCluster} {
		for _, cert := range certs {
			if cert.Kind != kind {
				continue
			}
			if v := c.of(cert); v != "" && !slices.Contains(words, v) {
				words = append(words, v)
			}
		}
		if len(words) > 0 && c.name != "certified" {
			break
		}
	}
	slices.Sort(words)
	return strings.Join(words, several)
}

// several stands between the conditions of nodes that are not alike.
const several = " | "

// unknown is the word for a condition that could not be found out.
const unknown = "not known"

// differences are the conditions in which two sides are not alike.
func differences(first, here []muster.Certificate, across []string) []wire.Difference {
	var list []wire.Difference
	for _, c := range conditions() {
		a, b := c.value(first), c.value(here)
		report := c.name == "certified" && (a != "yes" || b != "yes")
		if a == b && !report {
			continue
		}
		d := wire.Difference{Condition: c.name, First: a, Here: b, Effect: wire.EffectNoted, Concerns: c.words}
		known := a != "" && b != ""
		switch {
		case c.always:
			d.Effect = wire.EffectStops
		case c.stops && slices.Contains(across, c.name):
			d.Effect = wire.EffectWaived
		case c.stops && known:
			d.Effect = wire.EffectStops
		}
		if !known {
			d.First, d.Here = orUnknown(a), orUnknown(b)
		}
		list = append(list, d)
	}
	return list
}

func orUnknown(text string) string {
	if text == "" {
		return unknown
	}
	return text
}

// stopped is why a figure is not compared; empty if it is.
func stopped(differ []wire.Difference, name string, s scope) string {
	all := conditions()
	for _, d := range differ {
		i := slices.IndexFunc(all, func(c condition) bool { return c.name == d.Condition })
		if d.Effect != wire.EffectStops || i >= 0 && !all[i].changes(name, s) {
			continue
		}
		return fmt.Sprintf("%s: %s, and here %s", d.Condition, d.First, d.Here)
	}
	return ""
}

// Across checks the names of conditions that somebody wants to compare across.
func Across(names []string) error {
	var may, bad []string
	for _, c := range conditions() {
		if c.stops && !c.always {
			may = append(may, c.name)
		}
	}
	for _, n := range names {
		if !slices.Contains(may, n) {
			bad = append(bad, strconv.Quote(n))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "cannot compare across %s", strings.Join(bad, ", ")).
		WithHint("what may be compared across is %s", strings.Join(may, ", "))
}
