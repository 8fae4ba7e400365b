package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// Codes of causes.
const (
	CauseQuota   = "cpu-quota"
	CauseProcess = "noisy-process"
	CauseHog     = "memory-hog"
	CauseBLAS    = "wrong-blas"
	CauseClock   = "low-clock"
	CauseLink    = "half-link"
	CauseSwap    = "swap"
)

// Shares of the time from which on something is taken for a cause. A daemon that
// wakes up now and then stays below them.
const (
	leastStopped = 0.05 // of all processors
	leastBusy    = 0.10 // of one processor
	leastMissing = 0.10 // of the speed
)

// Causes names what low figures probably come from: by what the nodes counted
// meanwhile, by their conditions beside those of the others and of their class, and
// by the pattern of the figures. Findings are returned with it; without a low
// figure, and where nothing fits, they stay as they are. Judged are all figures of
// nodes, witnesses stand in the order of nodes.
func Causes(nodes []Node, findings []muster.Finding, judged []Judged, fabrics []FabricJudged, witnesses []Witness) []muster.Finding {
	c := detective{nodes: nodes, fabrics: fabrics, witnesses: make([]Witness, len(nodes))}
	copy(c.witnesses, witnesses)
	for i := range nodes {
		c.patterns = append(c.patterns, patternOf(i, judged))
		c.counts = append(c.counts, c.witnesses[i].count())
		c.low = append(c.low, slices.ContainsFunc(findings, func(f muster.Finding) bool {
			return f.Code == SlowNode && f.Node == nodes[i].Name && f.Metric != ""
		}))
	}
	out := slices.Clone(findings)
	for i := range out {
		f := &out[i]
		a, b := c.number(f.Node), c.number(f.Peer)
		switch {
		case f.Code == SlowNode && a >= 0:
			c.node(f, a)
		case f.Code == SlowHost && a >= 0 && b >= 0 && (c.limited(a) != "" || c.limited(b) != ""):
			f.Code = SlowLink // and not by what the host lacks
			c.link(f, a, b)
		case f.Code == SlowLink && a >= 0 && b >= 0:
			c.link(f, a, b)
		case f.Code == SlowCluster && betweenNodes(f.Metric) && len(c.nodes) == 2:
			c.link(f, 0, 1)
		case f.Code == Unstable && a >= 0 && c.low[a]:
			c.node(f, a)
		}
	}
	return out
}

type detective struct {
	nodes     []Node
	fabrics   []FabricJudged
	witnesses []Witness
	patterns  []pattern
	counts    []counted
	low       []bool
}

func (c *detective) number(name string) int {
	if name == "" {
		return -1
	}
	return slices.IndexFunc(c.nodes, func(n Node) bool { return n.Name == name })
}

// explanation is a cause with what it can explain.
type explanation struct {
	code, text string
	most       float64 // share of the speed that it can take; 1: any
}

// node names the cause of a low figure of a node.
func (c *detective) node(f *muster.Finding, i int) {
	between := betweenNodes(f.Metric)
	list := []explanation{c.swap(i), c.quota(i)}
	switch {
	case f.Metric == "dgemm":
		list = append([]explanation{c.blas(i)}, append(list, c.process(i), c.clock(i), c.hog(i))...)
	case between:
		list = append(list, c.process(i), c.half(i, -1))
	case ofMemory(f.Metric):
		list = append(list, c.hog(i), c.process(i), c.clock(i))
	default:
		list = append(list, c.process(i), c.clock(i))
		if strings.HasPrefix(f.Metric, "noise.") || strings.HasPrefix(f.Metric, "core.") || strings.HasPrefix(f.Metric, "mix.") {
			list = append(list, c.hog(i)) // what computes in memory is touched, too
		}
	}
	take(f, list)
}

// link names the cause of a slow link: one of its ends, or what is between.
func (c *detective) link(f *muster.Finding, a, b int) {
	var list []explanation
	for _, i := range []int{a, b} {
		if c.low[i] { // otherwise the node is none that is slow
			list = append(list, c.quota(i), c.process(i), c.hog(i))
		}
	}
	take(f, append(list, c.half(a, b)))
}

// take chooses the first explanation that can explain as much as is missing. Of times
// that were disturbed nearly all speed can be missing: they tell nothing of that.
func take(f *muster.Finding, list []explanation) {
	for _, e := range list {
		if e.code == "" || f.Loss != nil && !strings.HasPrefix(f.Metric, "noise.") && *f.Loss > e.most {
			continue
		}
		f.CauseCode, f.Cause = e.code, e.text
		return
	}
}

func betweenNodes(metric string) bool {
	return strings.HasPrefix(metric, "pair.") || strings.HasPrefix(metric, "ring.") || metric == exchange
}

func ofMemory(metric string) bool {
	return strings.HasPrefix(metric, "stream.") || strings.HasPrefix(metric, "core.mem.") || metric == "latency"
}

// others is what the nodes without low figures show on average; 0 where there are
// none.
func (c *detective) others(i int, of func(counted) float64) float64 {
	var list []float64
	for j, n := range c.counts {
		if j != i && !c.low[j] && n.seconds > 0 {
			list = append(list, of(n))
		}
	}
	if len(list) == 0 {
		return 0
	}
	return stat.Median(list)
}

// much reports whether a node has clearly more of something than a threshold and than
// the others.
func (c *detective) much(i int, least float64, of func(counted) float64) bool {
	v := of(c.counts[i])
	return v >= least && v >= 2*c.others(i, of)
}

// quota: a share of processor time is all that the node may have.
func (c *detective) quota(i int) explanation {
	n, p := c.counts[i], c.patterns[i]
	if c.much(i, leastStopped, func(n counted) float64 { return n.stopped }) {
		text := fmt.Sprintf("a quota on processor time: for %.0f %% of the time its processes stood still, and nobody else used its processors", 100*n.stopped)
		if n.times > 0 {
			text = fmt.Sprintf("a quota on processor time: it was used up %d times, and for %.0f %% of the time its processes stood still", n.times, 100*n.stopped)
		}
		return explanation{CauseQuota, text, min(1, 4*n.stopped)}
	}
	// A scheduler gives others some milliseconds, a quota takes the rest of its period.
	if n.blind && p.disturbed() && p.longest >= 0.012 && p.longest >= 3*p.longestNormal && !(p.chase >= p.lost/2) {
		return explanation{CauseQuota, fmt.Sprintf("a quota on processor time, by the figures alone: work stands still for up to %.0f ms, %.0f %% of the time is lost, "+
			"and single accesses to memory are as quick as ever", 1000*p.longest, 100*p.lost), min(1, 4*p.lost)}
	}
	return explanation{}
}

// process: somebody else used the node's processors.
func (c *detective) process(i int) explanation {
	n, p := c.counts[i], c.patterns[i]
	if !p.disturbed() {
		return explanation{}
	}
	lost := fmt.Sprintf("%.0f %% of the time is lost to disturbances", 100*p.lost)
	limit := func(share float64) float64 { return min(1, 4*max(share, p.lost)) }
	usual := c.others(i, func(o counted) float64 { return o.processes[n.busiest] })
	switch {
	case n.busy >= leastBusy && n.busy >= 2*usual && n.busy >= n.outside/2:
		// What does not fit into the caches goes through memory.
		if cache := max(c.witnesses[i].Conditions.Cache, 64<<20); n.resident > cache && p.stream >= leastMissing && !(p.stream < 0.8*p.dgemm) {
			return explanation{CauseHog, fmt.Sprintf("a process of the node that works on more memory than caches hold: %s, with %d MiB, used %.1f s of processor time in %.1f s; "+
				"streams lack %.0f %% of their speed", n.busiest, n.resident>>20, n.busy*n.seconds, n.seconds, 100*p.stream), limit(n.busy)}
		}
		return explanation{CauseProcess, fmt.Sprintf("another process of the node: %s used %.1f s of processor time in %.1f s; %s",
			n.busiest, n.busy*n.seconds, n.seconds, lost), limit(n.busy)}
	case c.much(i, leastBusy, func(n counted) float64 { return n.stolen }) && n.stolen > n.outside:
		return explanation{CauseProcess, fmt.Sprintf("the hypervisor gave %.1f s of its processors' time in %.1f s to others; %s",
			n.stolen*n.seconds, n.seconds, lost), limit(n.stolen)}
	case c.much(i, leastBusy, func(n counted) float64 { return n.outside }):
		return explanation{CauseProcess, fmt.Sprintf("processes outside of the node used %.1f s of its processors' time in %.1f s: a neighbour on the host, or the host itself; %s",
			n.outside*n.seconds, n.seconds, lost), limit(n.outside)}
	case n.blind && p.longest < 0.012 && p.lost >= p.lostNormal+0.1:
		return explanation{CauseProcess, "another process, by the figures alone: " + lost + fmt.Sprintf(", for %.0f ms at most at a time", 1000*p.longest), limit(0)}
	}
	return explanation{}
}

// hog: memory is used by somebody else.
func (c *detective) hog(i int) explanation {
	n, p := c.counts[i], c.patterns[i]
	computing := highest(p.computing(), p.quantum, 0)
	if !(p.stream >= leastMissing) || computing > p.stream/2 || p.dgemm > 0.75*p.stream {
		return explanation{}
	}
	// Who has a part of the processors takes as much of the bandwidth along.
	if max(n.contended(), p.contended()) >= 0.6*p.stream {
		return explanation{}
	}
	text := fmt.Sprintf("the bandwidth of memory is used by somebody else, or a part of it is missing: streams lack %.0f %% of their speed, computing %.0f %%",
		100*p.stream, 100*computing)
	usual := c.others(i, func(o counted) float64 { return o.processes[n.busiest] })
	switch {
	case n.busy >= leastBusy && n.busy >= 2*usual:
		text += fmt.Sprintf("; the process %s used %.1f s of processor time in %.1f s", n.busiest, n.busy*n.seconds, n.seconds)
	case n.seconds > 0:
		text += "; none of its processes does that, so this is by the figures alone"
	default:
		text += "; this is by the figures alone"
	}
	return explanation{CauseHog, text, 1}
}

// clock: the processor runs slower.
func (c *detective) clock(i int) explanation {
	n, p := c.counts[i], c.patterns[i]
	computing := p.computing()
	if !(p.quantum >= 0.03) || !(computing >= p.quantum/2) || p.whole > 2*p.quantum+0.02 {
		return explanation{}
	}
	text := fmt.Sprintf("a lower clock: work that needs nothing but the clock lacks %.0f %% of its speed, other computing %.0f %%", 100*p.quantum, 100*computing)
	limit := 2*p.quantum + 0.05
	is := c.witnesses[i].Conditions.Clock
	if was := c.usual(i, func(o muster.TestEnvironment) bool { return o.Clock != nil }); is != nil && was != nil {
		switch w := was.Clock; {
		case is.Governor != w.Governor:
			return explanation{CauseClock, text + fmt.Sprintf("; its governor is %s, and %s is usual", orNone(is.Governor), orNone(w.Governor)), limit}
		case is.Max > 0 && w.Max > 0 && float64(is.Max) < 0.97*float64(w.Max):
			return explanation{CauseClock, text + fmt.Sprintf("; it may run at %.2f GHz, and %.2f is usual", float64(is.Max)/1e9, float64(w.Max)/1e9), limit}
		case is.Boost != nil && w.Boost != nil && !*is.Boost && *w.Boost:
			return explanation{CauseClock, text + "; its boost is switched off", limit}
		}
	}
	now := c.others(i, func(o counted) float64 { return float64(o.clock) })
	switch {
	case n.hot > 0 && c.much(i, 1, func(n counted) float64 { return float64(n.hot) }):
		text += fmt.Sprintf("; its cores were too hot %d times", n.hot)
	case n.clock > 0 && float64(n.clock) < 0.97*now:
		text += fmt.Sprintf("; it ran at %.2f GHz, and others at %.2f", float64(n.clock)/1e9, now/1e9)
	case len(c.witnesses[i].Conditions.Host) > 0:
		text += "; or a neighbour on the same physical cores: this is by the figures alone"
	default:
		text += "; this is by the figures alone"
	}
	return explanation{CauseClock, text, limit}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// usual are conditions that the node's can be held against: those of its class,
// else those of a node without low figures; nil if there are none.
func (c *detective) usual(i int, has func(muster.TestEnvironment) bool) *muster.TestEnvironment {
	if u := c.witnesses[i].Usual; u != nil && has(*u) {
		return u
	}
	for j := range c.nodes {
		if j != i && !c.low[j] && c.nodes[j].Class == c.nodes[i].Class && has(c.witnesses[j].Conditions) {
			return &c.witnesses[j].Conditions
		}
	}
	return nil
}

// blas: another library than the class has, or one for another processor.
func (c *detective) blas(i int) explanation {
	p := c.patterns[i]
	rest := highest(p.computing(), p.quantum, 0)
	if !(p.dgemm >= leastMissing) || p.dgemm < 2*rest || p.dgemm < rest+leastMissing {
		return explanation{}
	}
	text := fmt.Sprintf("products of matrices lack %.0f %% of their speed, other computing %.0f %%: ", 100*p.dgemm, 100*rest)
	is := c.witnesses[i].Conditions.BLAS
	if is == nil {
		return explanation{}
	}
	if u := c.usual(i, func(o muster.TestEnvironment) bool { return o.BLAS != nil }); u != nil {
		if w := u.BLAS; is.File != w.File {
			return explanation{CauseBLAS, text + fmt.Sprintf("the BLAS is %s, and %s is usual", is.File, w.File), 1}
		} else if is.Config != w.Config {
			return explanation{CauseBLAS, text + fmt.Sprintf("the BLAS says of itself %q, and %q is usual", is.Config, w.Config), 1}
		}
	}
	if why := unfit(*is, c.witnesses[i].Conditions.Flags); why != "" {
		return explanation{CauseBLAS, text + why, 1}
	}
	return explanation{}
}

// unfit says why a library cannot be fast on a processor with these flags.
func unfit(b muster.Library, flags []string) string {
	if strings.HasSuffix(b.File, "/blas/libblas.so.3") || strings.Contains(b.File, "/libblas.so.3.") || strings.Contains(b.File, "librefblas") {
		return "the BLAS is the reference implementation, " + b.File
	}
	if !slices.Contains(flags, "avx2") {
		return ""
	}
	for word := range strings.FieldsSeq(b.Config) {
		switch word { // processors before AVX2, by OpenBLAS's names
		case "Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Atom", "Sandybridge", "Katmai", "Coppermine", "Northwood", "Banias",
			"Athlon", "Opteron", "Opteron_SSE3", "Barcelona", "Bobcat", "Bulldozer", "Piledriver", "Steamroller", "Nano":
			return "the BLAS takes the processor for a " + word
		}
	}
	return ""
}

// half: a link carries less, and answers as quickly as ever. Without b it is of all
// links of a, of which there is one where there are two nodes.
func (c *detective) half(a, b int) explanation {
	if b < 0 && len(c.nodes) == 2 {
		b = 1 - a
	}
	w := wiresOf(c.fabrics, a, b)
	text := "a link that is limited"
	if !math.IsNaN(w.bandwidth) { // otherwise nobody knows yet what such a link carries
		text = fmt.Sprintf("a link that carries %.0f %% of what is normal", 100*(1-w.bandwidth))
	}
	if w.bandwidth < leastMissing {
		return explanation{}
	}
	// A limit that can be seen needs no pattern. Where it queues, small messages are
	// late, too.
	quick := !(w.latency > max(0.1, w.bandwidth/3))
	if quick && !math.IsNaN(w.latency) {
		text += ", and answers as quickly as ever"
	}
	for _, i := range []int{a, b} {
		if i < 0 {
			continue
		}
		if why := c.limited(i); why != "" {
			return explanation{CauseLink, text + "; " + why, 1}
		}
	}
	if math.IsNaN(w.bandwidth) || !quick {
		return explanation{}
	}
	if math.IsNaN(w.latency) { // nothing tells it from a slow node
		return explanation{}
	}
	return explanation{CauseLink, text + "; what limits it is not at its ends: this is by the figures alone", 1}
}

// limited says what a node sees of a limit of its links.
func (c *detective) limited(i int) string {
	n, node := c.counts[i], c.nodes[i].Name
	for _, l := range n.links {
		if l.Rate > 0 {
			return fmt.Sprintf("%s of %s is limited to %.4g B/s by %s", l.Name, node, float64(l.Rate), l.Qdisc)
		}
		if l.Duplex == "half" {
			return fmt.Sprintf("%s of %s runs at half duplex", l.Name, node)
		}
		usual := c.others(i, func(o counted) float64 {
			for _, p := range o.links {
				if p.Name == l.Name {
					return float64(p.Speed)
				}
			}
			return 0
		})
		if l.Speed > 0 && float64(l.Speed) < 0.9*usual {
			return fmt.Sprintf("%s of %s runs at %.4g bits/s, and %.4g is usual", l.Name, node, float64(l.Speed), usual)
		}
	}
	if n.resent >= 0.01 && n.resent >= 2*c.others(i, func(o counted) float64 { return o.resent }) {
		return fmt.Sprintf("%s sent %.1f %% of its segments again", node, 100*n.resent)
	}
	return ""
}

// swap: memory was written to a disk and read back.
func (c *detective) swap(i int) explanation {
	n := c.counts[i]
	if n.starved < 0.02 || !c.much(i, 1e6, func(n counted) float64 { return n.swapped }) {
		return explanation{}
	}
	return explanation{CauseSwap, fmt.Sprintf("memory was swapped out and in at %.3g B/s, and for %.0f %% of the time something waited for memory", n.swapped, 100*n.starved), 1}
}
