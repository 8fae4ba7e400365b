package page

import (
	"math"
	"strings"

	"github.com/muster-hpc/muster"
)

// index sums up a family of small programs in one figure of each node: the geometric
// mean of their medians. It is calculated here and not certified, so it has neither
// interval nor extremes.
func index(list []figure, family, title string) (figure, bool) {
	out := figure{about: aboutMetric(family), figureKey: figureKey{Name: family}}
	out.Title = title
	type sum struct {
		logs, references float64
		n, compared      int
		grades           []muster.Grade
		node             string
	}
	sums := map[int]*sum{}
	var order []int
	members := 0
	for _, f := range list {
		if !strings.HasPrefix(f.figureKey.Name, family+".") {
			continue
		}
		members++
		out.Unit, out.Less, out.group = f.Unit, f.Less, f.group
		for _, r := range f.Rows {
			s := sums[r.At]
			if s == nil {
				s = &sum{node: r.Node}
				sums[r.At] = s
				order = append(order, r.At)
			}
			s.n++
			s.logs += math.Log(r.Median)
			s.grades = append(s.grades, r.Verdict)
			if r.Reference != nil {
				s.compared++
				s.references += math.Log(r.Reference.Value)
			}
		}
	}
	if members < 2 {
		return out, false
	}
	for _, at := range order {
		s := sums[at]
		mean := math.Exp(s.logs / float64(s.n))
		if s.n < members || len(finite(mean)) == 0 {
			continue // of other programs it would be another index
		}
		m := muster.Metric{Name: family, Unit: out.Unit, Median: mean, Min: mean, Max: mean, Verdict: muster.Overall(s.grades...)}
		if ref := math.Exp(s.references / float64(s.n)); s.compared == s.n && len(finite(ref)) > 0 {
			m.Reference = &muster.Reference{Value: ref, Source: muster.SourcePeers}
		}
		out.Rows = append(out.Rows, figureRow{s.node, at, m})
	}
	out.What += " The geometric mean of all of them, calculated for this page."
	return out, len(out.Rows) > 0
}
