package page

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
)

// noise draws what other work on the nodes does to fixed pieces of work.
func noise(list []figure, nodes []muster.Certificate) (picture, bool) {
	names := []string{"noise.median", "noise.p99", "noise.p999", "noise.max"}
	words := []string{"median", "1 in 100", "1 in 1,000", "longest"}
	values := make([]map[int]float64, len(names))
	lo, hi := 0.0, 0.0
	for k, name := range names {
		values[k] = map[int]float64{}
		for _, f := range list {
			if f.figureKey.Name != name || f.Unit != "s" {
				continue
			}
			for _, r := range f.Rows {
				if len(finite(r.Median)) == 0 || r.Median <= 0 {
					continue
				}
				values[k][r.At] = r.Median
				if lo == 0 || r.Median < lo {
					lo = r.Median
				}
				hi = max(hi, r.Median)
			}
		}
	}
	p := picture{Title: "Noise of the operating system", W: half,
		Caption: "The same small piece of work, again and again: how long it takes as a rule, and how long where something else came between. The nearer together, the quieter the node."}
	if !(hi > lo) {
		return p, false
	}
	const right, top = 420.0, 34.0
	var labels []string
	for _, n := range nodes {
		labels = append(labels, n.Node)
	}
	left := gutter(labels)
	a := axis{lo: lo / 1.05, hi: hi * 1.1, from: left, to: right, log: true}
	for k, w := range words {
		x := left + 8 + float64(k)*88
		var s pen
		s.mark(k, x, 10, 3.2)
		p.path(fmt.Sprintf("sign n%d", k), s.String(), "")
		p.text("note", x+8, 14, w)
	}
	rows := nodes
	if len(nodes) > mostRows {
		rows = worstNoise(values[2], nodes)
		p.Caption += " Only the noisiest nodes are drawn."
	}
	each := 19.0
	if len(rows) > 16 {
		each = 13
	}
	bottom := top + each*float64(len(rows))
	for _, v := range a.ticks(5) {
		p.line("grid", a.at(v), top-4, a.at(v), bottom)
		p.text("tick mid", a.at(v), bottom+13, tickUnit(v, "s"))
	}
	at := map[string]int{}
	for i, n := range nodes {
		at[n.Node] = i
	}
	for row, n := range rows {
		i := at[n.Node]
		y := top + each*(float64(row)+0.5)
		p.text("label end", left-7, y+4, short(n.Node, 10))
		first, last := 0.0, 0.0
		for k := range names {
			if v, ok := values[k][i]; ok {
				if last = a.at(v); first == 0 {
					first = last
				}
			}
		}
		if last > first {
			p.line("extremes", first, y, last, y)
		}
		for k := range names {
			if v, ok := values[k][i]; ok {
				var s pen
				s.mark(k, a.at(v), y, 3.2)
				p.path(fmt.Sprintf("sign n%d", k), s.String(), n.Node+", "+words[k]+": "+human(v, "s"))
			}
		}
	}
	for k, w := range words {
		var v []float64
		for _, one := range values[k] {
			v = append(v, one)
		}
		if len(v) > 0 {
			p.Text += fmt.Sprintf("%s: %s. ", w, between(slices.Min(v), slices.Max(v), "s"))
		}
	}
	p.H = num(bottom + 20)
	return p, true
}

// worstNoise are the nodes whose work is held up most.
func worstNoise(values map[int]float64, nodes []muster.Certificate) []muster.Certificate {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case values[a] > values[b]:
			return -1
		case values[a] < values[b]:
			return 1
		}
		return 0
	})
	var out []muster.Certificate
	for _, i := range order[:min(mostLines, len(order))] {
		out = append(out, nodes[i])
	}
	return out
}
