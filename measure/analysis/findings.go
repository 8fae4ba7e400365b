package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// Codes of findings.
const (
	SlowNode = "slow-node"
	// SlowHost is of a node that lacks no more than the others on its host.
	SlowHost    = muster.FindingSlowHost
	SlowLink    = "slow-link"
	SlowTier    = "slow-tier"
	SlowCluster = "slow-cluster"
	Unstable    = "unstable"
	WrongResult = "wrong-result"
)

// Findings puts into words what was judged of nodes. Confirmed are those that were
// measured again.
//
// In an exchange of all with all each waits for the slowest: where more than one node
// is low in it, that is told once, of the cluster, and blames nobody.
func Findings(nodes []Node, judged []Judged, confirmed map[int]bool) []muster.Finding {
	var list []muster.Finding
	unsteady, all := map[int][]muster.Metric{}, map[int]int{}
	together := map[string][]Judged{}
	for _, j := range judged {
		if j.Metric.Name == exchange && j.Metric.Verdict == muster.GradeLow && !j.Shared {
			together[named(j.Metric)] = append(together[named(j.Metric)], j)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(together)) {
		if low := together[name]; len(low) > 1 {
			worst := slices.MaxFunc(low, func(a, b Judged) int { return cmp.Compare(a.Deficit, b.Deficit) })
			f := slow(SlowCluster, worst, confirmed[worst.Node])
			f.Text = fmt.Sprintf("%s of %d of %d nodes, which wait for each other: %s", name, len(low), len(nodes), compared(worst))
			list = append(list, f)
		}
	}
	for _, j := range judged {
		node := nodes[j.Node].Name
		all[j.Node]++
		switch m := j.Metric; m.Verdict {
		case muster.GradeLow:
			if len(together[named(m)]) > 1 && !j.Shared {
				continue
			}
			f := slow(SlowNode, j, confirmed[j.Node])
			f.Node = node
			f.Text = fmt.Sprintf("%s of %s: %s", named(m), node, compared(j))
			blameHost(&f, j)
			list = append(list, f)
		case muster.GradeUnstable:
			unsteady[j.Node] = append(unsteady[j.Node], m)
		}
	}
	for i, n := range nodes {
		list = append(list, unstable(n.Name, unsteady[i], all[i])...)
	}
	return list
}

// exchange is the figure of nodes that all of them make together.
const exchange = "alltoall"

// fewUnstable is up to how many figures of a node that vary too much are told one
// by one: of many the cause is one, and nobody reads them.
const fewUnstable = 3

// unstable reports the figures of a node, of so many, that vary too much.
func unstable(node string, unsteady []muster.Metric, all int) []muster.Finding {
	var list []muster.Finding
	if len(unsteady) <= fewUnstable {
		for _, m := range unsteady {
			list = append(list, muster.Finding{
				Code: Unstable, Node: node, Metric: m.Name,
				Text: fmt.Sprintf("%s of %s varies too much from launch to launch to be said: from %.4g to %.4g %s", named(m), node, m.Min, m.Max, m.Unit),
			})
		}
		return list
	}
	var worst []string
	for _, m := range unsteady[:fewUnstable] {
		worst = append(worst, named(m))
	}
	return append(list, muster.Finding{
		Code: Unstable, Node: node,
		Text: fmt.Sprintf("%d of %d figures of %s vary too much from launch to launch to be said: %s and %d more", len(unsteady), all, node, strings.Join(worst, ", "), len(unsteady)-len(worst)),
	})
}

// FabricFindings does so for what is between nodes.
func FabricFindings(nodes []Node, judged FabricJudged) []muster.Finding {
	var list []muster.Finding
	for _, j := range judged.Nodes {
		if j.Metric.Verdict == muster.GradeLow {
			f := slow(SlowNode, j, judged.Again[j.Node])
			f.Node = nodes[j.Node].Name
			f.Text = fmt.Sprintf("%s of %s with everybody: %s", named(j.Metric), f.Node, compared(j))
			blameHost(&f, j)
			list = append(list, f)
		}
	}
	for _, l := range judged.Links {
		if l.Metric.Verdict == muster.GradeLow {
			f := slow(SlowLink, l.Judged, l.Again)
			f.Node, f.Peer, f.Distance = nodes[l.A].Name, nodes[l.B].Name, l.Metric.Distance
			f.Text = fmt.Sprintf("%s between %s and %s: %s", named(l.Metric), f.Node, f.Peer, compared(l.Judged))
			blameHost(&f, l.Judged)
			list = append(list, f)
		}
	}
	for _, t := range judged.Tiers {
		if t.Metric.Verdict == muster.GradeLow {
			f := slow(SlowTier, t.Judged, false)
			f.Distance = string(t.Distance)
			f.Text = fmt.Sprintf("%s between all nodes %s: %s", named(t.Metric), apart(t.Distance), compared(t.Judged))
			blameHost(&f, t.Judged)
			list = append(list, f)
		}
	}
	return list
}

// WholeFindings does so for what all nodes did at once. Nobody is to blame for it.
func WholeFindings(judged []Judged) []muster.Finding {
	var list []muster.Finding
	for _, j := range judged {
		if j.Metric.Verdict == muster.GradeLow {
			f := slow(SlowCluster, j, false)
			f.Text = fmt.Sprintf("%s of the whole cluster: %s", named(j.Metric), compared(j))
			blameHost(&f, j)
			list = append(list, f)
		}
	}
	return list
}

// WrongFindings does so for results that were not right.
func WrongFindings(nodes []Node, wrong []Wrong) []muster.Finding {
	var list []muster.Finding
	for _, w := range wrong {
		f := muster.Finding{Code: WrongResult, Metric: w.Metric, Text: w.Metric + " had a wrong result: " + w.Text}
		if w.Node >= 0 {
			f.Node = nodes[w.Node].Name
		}
		if w.Peer >= 0 {
			f.Peer = nodes[w.Peer].Name
		}
		list = append(list, f)
	}
	return list
}

// blameHost says of what is shared whose it is.
func blameHost(f *muster.Finding, j Judged) {
	if j.Shared {
		f.Code = SlowHost
		f.Text += "; all on its host lack about as much"
	}
}

func slow(code string, j Judged, confirmed bool) muster.Finding {
	f := muster.Finding{Code: code, Metric: j.Metric.Name, Seen: &j.Metric.Median, Confirmed: confirmed}
	if r := j.Metric.Reference; r != nil {
		f.Expected = &r.Value
	}
	if !math.IsNaN(j.Deficit) {
		f.Loss = &j.Deficit
	}
	if !math.IsNaN(j.Adjusted) {
		f.Chance = &j.Adjusted
	}
	return f
}

// named is the metric with what tells it from others of its name.
func named(m muster.Metric) string {
	s := m.Name
	if m.Size > 0 {
		s += fmt.Sprintf(" of %d bytes", m.Size)
	}
	if m.Threads > 0 {
		s += fmt.Sprintf(" with %d thread%s", m.Threads, map[bool]string{true: "s"}[m.Threads != 1])
	}
	return s
}

// compared says how far from what it should be. Of times more is worse: a share
// that is missing of the speed is told for both.
func compared(j Judged) string {
	m := j.Metric
	is := "normal"
	if m.Reference.Source == muster.SourceTarget {
		is = "promised"
	}
	text := fmt.Sprintf("%.4g %s, and %.4g is %s", m.Median, m.Unit, m.Reference.Value, is)
	return text + fmt.Sprintf(" (%.0f %% of the speed is missing)", 100*j.Deficit)
}

func apart(d Distance) string { return d.String() }
