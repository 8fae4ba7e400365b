package page

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
)

// mostLines are the nodes that get a line each; more become a band.
const mostLines = 16

// memoryLatency draws how long a read takes, by the size of what is read.
func memoryLatency(list []figure, nodes []muster.Certificate) (picture, bool) {
	of := map[int][]point{}
	low := map[int]bool{}
	all := map[int64][]float64{}
	for _, f := range list {
		if f.figureKey.Name != "latency" || f.Size <= 0 {
			continue
		}
		for _, r := range f.Rows {
			of[r.At] = append(of[r.At], point{float64(f.Size), r.Median, r.Median, r.Median})
			low[r.At] = low[r.At] || r.Verdict == muster.GradeLow
			all[f.Size] = append(all[f.Size], r.Median)
		}
	}
	c := chart{picture: picture{Title: "Memory latency by size", W: half, H: 270, Caption: "How long one read takes in a piece of memory of that size. Each step up is a cache that has become too small."}, Unit: "s", Right: 74}
	if len(of) == 1 {
		c.Right = 20
	}
	c.Marks = cacheMarks(nodes)
	if len(of) > mostLines {
		band := curve{Text: "all nodes", Class: "c0", Sign: -1}
		for s, v := range all {
			band.Points = append(band.Points, point{float64(s), slices.Min(v), middle(v), slices.Max(v)})
		}
		c.Curves = append(c.Curves, band)
	}
	named := 0
	for i, n := range nodes {
		cv := curve{Class: "thin", Sign: -1, Points: of[i]}
		switch {
		case low[i] && named < 6:
			named++
			cv.Class, cv.Text, cv.Sign = "low", n.Node, 3
		case len(of) == 1:
			cv.Class, cv.Sign = "c0", 0
		case len(of) > mostLines:
			continue
		}
		c.Curves = append(c.Curves, cv)
	}
	if len(of) > 1 && len(of) <= mostLines {
		rest := curve{Text: "all nodes", Class: "thin", Sign: -1}
		if named > 0 {
			rest.Text = "the others"
		}
		for s, v := range all {
			m := middle(v)
			rest.Points = append(rest.Points, point{float64(s), m, m, m})
		}
		c.Curves = append(c.Curves, rest)
	}
	// What is wrong is drawn last, above the others.
	slices.SortStableFunc(c.Curves, func(a, b curve) int { return len(a.Class)%3 - len(b.Class)%3 })
	var sums []curve
	for s, v := range all {
		if sums == nil {
			sums = []curve{{Text: "Median of all nodes"}}
		}
		m := middle(v)
		sums[0].Points = append(sums[0].Points, point{float64(s), m, m, m})
	}
	c.Text = spoken(sums, "s")
	return c.draw()
}

// cacheMarks are the sizes of caches that are known of the first node.
func cacheMarks(nodes []muster.Certificate) []mark {
	if len(nodes) == 0 {
		return nil
	}
	if t := nodes[0].Conditions.Topology; t != nil {
		for _, p := range t.Packages {
			for _, n := range p.Nodes {
				for _, g := range n.Groups {
					return caches(g)
				}
			}
		}
	}
	if n := nodes[0].Conditions.Cache; n > 0 {
		return []mark{{float64(n), "last cache " + size(n)}}
	}
	return nil
}

// caches are those that the cores of a group have, as marks.
func caches(g muster.CoreGroup) []mark {
	var out []mark
	for _, c := range g.Caches {
		if c.Size > 0 {
			out = append(out, mark{float64(c.Size), fmt.Sprintf("L%d", c.Level)})
		}
	}
	return out
}

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
