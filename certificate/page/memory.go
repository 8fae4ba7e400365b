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
