package page

import (
	"strings"

	"github.com/muster-hpc/muster"
)

// index is the figure that sums up a family of small programs on each node. It is
// calculated from their figures as muster.Indices does, so that certificates of before
// indices were signed have it, too.
func index(list []figure, family, title string) (figure, bool) {
	out := figure{about: aboutMetric(family), figureKey: figureKey{Name: family}}
	out.Title = title
	type node struct {
		name    string
		metrics []muster.Metric
	}
	nodes := map[int]*node{}
	var order []int
	members := 0
	for _, f := range list {
		if !strings.HasPrefix(f.figureKey.Name, family+".") {
			continue
		}
		members++
		out.Unit, out.Less, out.group = f.Unit, f.Less, f.group
		for _, r := range f.Rows {
			if nodes[r.At] == nil {
				nodes[r.At] = &node{name: r.Node}
				order = append(order, r.At)
			}
			nodes[r.At].metrics = append(nodes[r.At].metrics, r.Metric)
		}
	}
	for _, at := range order {
		n := nodes[at]
		if len(n.metrics) < members {
			continue // of other programs it would be another index
		}
		for _, m := range muster.Indices(n.metrics) {
			m.Min, m.Max = m.Median, m.Median // nothing is drawn beside a mean
			out.Rows = append(out.Rows, figureRow{n.name, at, m})
		}
	}
	out.What += " The geometric mean of all of them."
	return out, len(out.Rows) > 0
}
