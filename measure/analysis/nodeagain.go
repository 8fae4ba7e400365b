package analysis

import (
	"math"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// Nodes that are slow with everybody are measured again with so many partners that
// nobody suspects, and so many of them at most.
const (
	againPartners = 3
	againNodes    = 8
)

// SuspectEnds are links by which nodes are measured again that are slow with
// everybody: each with a few partners which it has met, and which are in no list of
// suspects.
func SuspectEnds(judged []FabricJudged, suspects []int) []Pair {
	var low []int
	for _, f := range judged {
		for _, n := range f.Nodes {
			if n.Metric.Verdict == muster.GradeLow && !slices.Contains(low, n.Node) {
				low = append(low, n.Node)
			}
		}
	}
	slices.Sort(low)
	var list []Pair
	for _, s := range low[:min(len(low), againNodes)] {
		var met []Pair
		for _, f := range judged {
			for _, l := range f.Links {
				other := l.A + l.B - s
				if l.A != s && l.B != s || slices.Contains(suspects, other) || slices.Contains(low, other) || slices.Contains(met, l.Pair) {
					continue
				}
				met = append(met, l.Pair)
			}
		}
		slices.SortFunc(met, func(p, q Pair) int { return p.A + p.B - q.A - q.B }) // one end is the same
		list = append(list, met[:min(len(met), againPartners)]...)
	}
	return list
}

// NodesAgain judges nodes that were slow with everybody by what they showed again, with
// partners that nobody suspects, and puts that in the place of what made them
// suspects. What good pairs beside them changed since is taken off. It returns those
// that are low again: that anybody is who is not has the chance Rules.Condemn, over
// all figures, and every test of the first time counts. A node that was not measured
// again stays what it was.
func (r Rules) NodesAgain(fabrics []Fabric, judged []FabricJudged, again []Fabric, suspects []int) (map[int]bool, error) {
	tests := 0
	for _, j := range judged {
		tests += j.tests()
	}
	confirmed := map[int]bool{}
	for i, f := range fabrics {
		at := slices.IndexFunc(again, func(o Fabric) bool { return o.Name == f.Name && o.Size == f.Size })
		low := slices.ContainsFunc(judged[i].Nodes, func(n Judged) bool {
			return n.Metric.Verdict == muster.GradeLow && slices.Contains(suspects, n.Node)
		})
		if at < 0 || !low {
			continue
		}
		if err := r.nodesAgain(f, &judged[i], again[at], suspects, tests, confirmed); err != nil {
			return nil, err
		}
	}
	return confirmed, nil
}

func (r Rules) nodesAgain(f Fabric, judged *FabricJudged, again Fabric, suspects []int, tests int, confirmed map[int]bool) error {
	ends := func(p Pair) int {
		n := 0
		for _, s := range suspects {
			if p.A == s || p.B == s {
				n++
			}
		}
		return n
	}
	var theirs []Pair
	for _, l := range again.Links {
		if ends(l.Pair) > 0 {
			theirs = append(theirs, l.Pair)
		}
	}
	change, ok := f.change(again, theirs)
	if !ok {
		return nil
	}
	as := Figure{Less: f.Less}
	now := f
	now.Links = slices.DeleteFunc(slices.Clone(f.Links), func(l Link) bool { return ends(l.Pair) > 0 })
	seen := map[int]bool{}
	for _, l := range again.Links {
		if ends(l.Pair) != 1 || len(l.Launches) == 0 {
			continue
		}
		l.Launches, l.Which = slices.Clone(l.Launches), nil
		for k, v := range l.Launches {
			l.Launches[k] = as.value(as.better(v) + change)
		}
		now.Links = append(now.Links, l)
		seen[l.A], seen[l.B] = true, true
	}
	var out FabricJudged
	named := Figure{Name: f.Name, Unit: f.Unit, Size: f.Size, Less: f.Less}
	pairs, tiers, err := r.links(now, named, &out)
	if err != nil {
		return err
	}
	if err := out.blame(r, now, named, pairs, tiers); err != nil {
		return err
	}
	var list []Judged
	for _, n := range out.Nodes {
		was := slices.IndexFunc(judged.Nodes, func(o Judged) bool { return o.Node == n.Node })
		if was >= 0 && judged.Nodes[was].Metric.Verdict == muster.GradeLow && slices.Contains(suspects, n.Node) && seen[n.Node] && !math.IsNaN(n.P) {
			list = append(list, n)
		}
	}
	asked := len(list)
	if asked == 0 {
		return nil
	}
	for len(list) < tests { // the others of the first time, none of which is asked now
		other := list[0]
		other.P, other.Deficit = 1, 0
		list = append(list, other)
	}
	if err := decide(r.tests(list), stat.Holm, r.Condemn); err != nil {
		return err
	}
	for _, n := range list[:asked] {
		was := slices.IndexFunc(judged.Nodes, func(o Judged) bool { return o.Node == n.Node })
		judged.Nodes[was] = n
		if judged.Again == nil {
			judged.Again = map[int]bool{}
		}
		judged.Again[n.Node] = true
		if n.Metric.Verdict == muster.GradeLow {
			confirmed[n.Node] = true
		}
	}
	return nil
}
