package analysis

import (
	"math"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// clearlyBehind is the share of those that are blamed on a slow host although they
// lack no more than the others on it.
const clearlyBehind = 0.05

// Share marks what is low of all nodes of a class on one host, and of a node not
// clearly more than of the others: then the host is slow, and not one of its slices.
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
	j.Shared = ok && j.Metric.Verdict == muster.GradeLow && j.Metric.Reference.Source == muster.SourceHistory && j.Deficit <= 1.5*loss+0.05
}

// hostLoss is the share of the speed that the slices of each host lack together: the
// median over what all of them lack. Hosts of which nothing is shared are left out.
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
	return out
}
