package analysis

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// clearlyBehind is the share of those that are blamed on a slow host although they
// lack no more than the others on it.
const clearlyBehind = 0.05

// Share marks what is low of all nodes of a class on one host, and of a node not
// clearly more than of the others: then the host is slow, and not one of its slices. So
// it is where only some are low, and all figures of all slices there lack about as much.
// Where nothing is known of how far such nodes are apart nobody is excused, and
// neither is who is alone on its host: another machine may be better.
func Share(nodes []Node, judged []Judged) error {
	type figure struct {
		host, class, name string
		size              int64
		threads           int
	}
	groups := map[figure][]int{}
	p := make([]float64, len(judged))
	for i, j := range judged {
		p[i] = math.NaN()
		if j.beside != nil {
			p[i] = j.beside.p
		}
		if n := nodes[j.Node]; n.Place.Host != "" {
			k := figure{n.Place.Host, n.Class, j.Metric.Name, j.Metric.Size, j.Metric.Threads}
			groups[k] = append(groups[k], i)
		}
	}
	behind, err := stat.BenjaminiHochberg(p)
	if err != nil {
		return err
	}
	for k, group := range groups {
		if k.name == exchange || len(group) < 2 || slices.ContainsFunc(group, func(i int) bool { return judged[i].Metric.Verdict != muster.GradeLow }) {
			continue
		}
		for _, i := range group {
			j := &judged[i]
			if j.beside == nil || behind[i] <= clearlyBehind || j.Metric.Reference.Source == muster.SourceTarget {
				continue
			}
			if j.Shared = true; j.Metric.Reference.Source != muster.SourceHistory {
				p := j.P
				j.take(j.past)
				j.P = p
			}
		}
	}
	// Chance decides which of two is low when both lack about as much.
	drift := hostDrift(nodes, judged)
	for i := range judged {
		j := &judged[i]
		loss := drift[nodes[j.Node].Place.Host]
		if j.Shared || j.Metric.Verdict != muster.GradeLow || j.Metric.Name == exchange || j.beside == nil || behind[i] <= clearlyBehind ||
			j.Metric.Reference.Source == muster.SourceTarget || loss < worthExcusing || j.past.deficit > 1.5*loss+worthExcusing {
			continue
		}
		j.Shared = true
		p := j.P
		j.take(j.past)
		j.P = p
	}
	lost := hostLoss(nodes, judged)
	for i := range judged {
		if j := &judged[i]; j.Metric.Name == exchange {
			lost.mark(j, oneHost(nodes))
		}
	}
	return nil
}

// ShareFabric does so for what is between nodes on one host, once that of the nodes by
// themselves is done: messages in it are as slow as what sends them, and a half more.
func ShareFabric(nodes []Node, judged []Judged, between *FabricJudged) {
	lost := hostLoss(nodes, judged)
	for i := range between.Nodes {
		j := &between.Nodes[i]
		lost.mark(j, nodes[j.Node].Place.Host)
	}
	lost = lost.together(alike(nodes, between.Links))
	if loss, ok := lost.ofAll(nodes); ok {
		for i := range between.Tiers {
			if t := &between.Tiers[i]; t.Distance == SameHost {
				losses{"": loss}.mark(&t.Judged, "")
			}
		}
	}
	for i := range between.Links {
		if l := &between.Links[i]; nodes[l.A].Place.Host == nodes[l.B].Place.Host {
			lost.mark(&l.Judged, nodes[l.A].Place.Host)
		}
	}
}

// ShareWhole does so for what all nodes did at once, where all are on one host.
func ShareWhole(nodes []Node, judged, whole []Judged) {
	lost := hostLoss(nodes, judged)
	for i := range whole {
		lost.mark(&whole[i], oneHost(nodes))
	}
}

// oneHost is the host of all nodes; "" if they are on several.
func oneHost(nodes []Node) string {
	for _, n := range nodes {
		if n.Place.Host != nodes[0].Place.Host {
			return ""
		}
	}
	return nodes[0].Place.Host
}

// losses are shares of the speed, by host.
type losses map[string]float64

// mark marks what is low and lacks no more than messages inside of such a host do.
func (l losses) mark(j *Judged, host string) {
	loss, ok := l[host]
	j.Shared = ok && j.Metric.Verdict == muster.GradeLow && j.Metric.Reference != nil && j.Metric.Reference.Source == muster.SourceHistory && j.Deficit <= 1.5*loss+0.05
}

// worthExcusing is the share that all slices of a host have to lack before what is
// between them is excused by it.
const worthExcusing = 0.02

// hostLoss is the share of the speed that the slices of each host lack together: the
// median over what is low of all of them, or over what they lack of computing, or of
// memory, if that is more. A host that is a tenth slower than ever need not make
// any figure of a node low by itself; messages, which need processors and memory, lack
// that tenth all the same. Hosts of which nothing is shared are left out.
func hostLoss(nodes []Node, judged []Judged) losses {
	lost := map[string][]float64{}
	for _, j := range judged {
		if host := nodes[j.Node].Place.Host; j.Shared && !math.IsNaN(j.Deficit) {
			lost[host] = append(lost[host], j.Deficit)
		}
	}
	out := losses{}
	for host, list := range lost {
		out[host] = stat.Median(list)
	}
	for host, loss := range hostDrift(nodes, judged) {
		if loss >= max(worthExcusing, out[host]) {
			out[host] = loss
		}
	}
	return out
}

// hostDrift is what all slices of a host lack against their history, whether that is
// low or not: of each figure what the best of them lacks, and over figures of computing,
// and of memory, the median. A host with one slice has nobody to agree with.
func hostDrift(nodes []Node, judged []Judged) losses {
	count := map[string]int{}
	for _, n := range nodes {
		count[n.Place.Host]++
	}
	type figure struct {
		host, name    string
		size, threads int64
	}
	lacks := map[figure][]float64{}
	for _, j := range judged {
		m := j.Metric
		k := figure{nodes[j.Node].Place.Host, m.Name, m.Size, int64(m.Threads)}
		if k.host == "" || j.past == nil || math.IsNaN(j.past.deficit) || !ofMemory(m.Name) && !ofComputing(m.Name) {
			continue
		}
		lacks[k] = append(lacks[k], j.past.deficit)
	}
	computing, memory := map[string][]float64{}, map[string][]float64{}
	for k, list := range lacks {
		if len(list) < 2 || len(list) != count[k.host] {
			continue
		}
		least := slices.Min(list)
		if ofMemory(k.name) {
			memory[k.host] = append(memory[k.host], least)
		} else {
			computing[k.host] = append(computing[k.host], least)
		}
	}
	out := losses{}
	for _, of := range []map[string][]float64{computing, memory} {
		for host, list := range of {
			out[host] = max(out[host], stat.Median(list))
		}
	}
	return out
}

func ofComputing(metric string) bool {
	return metric == "dgemm" || metric == "noise.median" || strings.HasPrefix(metric, "mix.") || strings.HasPrefix(metric, "core.") && !ofMemory(metric)
}

// alike are the losses that all messages inside of a host have in common, of three pairs
// or more: one bad link is not in all of them, nor is one bad node. What links do to
// each other at the same time is their host's.
func alike(nodes []Node, links []JudgedLink) losses {
	lost := map[string][]float64{}
	innocent := map[string]bool{}
	for _, l := range links {
		host := nodes[l.A].Place.Host
		if host == "" || host != nodes[l.B].Place.Host {
			continue
		}
		if l.Metric.Verdict != muster.GradeLow || l.Metric.Reference == nil || l.Metric.Reference.Source != muster.SourceHistory {
			innocent[host] = true
			continue
		}
		lost[host] = append(lost[host], l.Deficit)
	}
	out := losses{}
	for host, list := range lost {
		if len(list) >= 3 && !innocent[host] {
			out[host] = slices.Min(list)
		}
	}
	return out
}

// together is what both say.
func (l losses) together(o losses) losses {
	out := maps.Clone(l)
	for host, loss := range o {
		out[host] = max(out[host], loss)
	}
	return out
}

// ofAll is the least of what all hosts with several nodes lack; false if one of them
// lacks nothing.
func (l losses) ofAll(nodes []Node) (float64, bool) {
	several := map[string]int{}
	for _, n := range nodes {
		several[n.Place.Host]++
	}
	least, found := math.Inf(1), false
	for host, n := range several {
		if n < 2 {
			continue
		}
		loss, ok := l[host]
		if !ok {
			return 0, false
		}
		least, found = min(least, loss), true
	}
	return least, found
}
