package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/muster-hpc/muster"
)

// levels are the steps of a heat map.
const levels = 9

// Up to numbered nodes each cell has its value in it; up to mostCells each pair is
// a cell; above, neighbours in the list share one.
const (
	numbered  = 12
	mostCells = 48
)

// link is what was measured from one node to another, by their numbers.
type link struct{ from, to int }

// heat draws one figure of pairs. Where only one way is known, it stands for both.
func heat(title string, a about, unit string, less bool, names []string, values map[link]float64) picture {
	each := (len(names) + mostCells - 1) / mostCells
	cells := map[link]float64{}
	for l, v := range values {
		c := link{l.from / each, l.to / each}
		if was, ok := cells[c]; !ok || (v > was) == less {
			cells[c] = v // the worst, so that no slow pair is hidden among others
		}
	}
	best, worst := worstOf(values, less)
	p := picture{Title: title, Caption: a.What, W: half}
	m := (len(names) + each - 1) / each
	const left, top = 44.0, 34.0
	side := (half - left - 2) / float64(m)
	side = min(side, 42)
	lo, hi := min(values[best], values[worst]), max(values[best], values[worst])
	scale := heatScale{lo, hi, less}
	per, unitName := scaled(unit, hi)
	keys := make([]link, 0, len(cells))
	for c := range cells {
		keys = append(keys, c)
	}
	slices.SortFunc(keys, func(a, b link) int { return (a.from-b.from)*m + a.to - b.to })
	p.rect("empty", left, top, side*float64(m), side*float64(m), "")
	var paths [levels]pen
	for _, c := range keys {
		v := cells[c]
		x, y := left+side*float64(c.to), top+side*float64(c.from)
		level := scale.level(v)
		if m > mostCells/3 { // too many for a tip each
			paths[level].box(x, y, side, side)
			continue
		}
		tip := fmt.Sprintf("%s and %s: %s", names[c.from], names[c.to], human(v, unit))
		p.rect(fmt.Sprintf("heat h%d", level), x, y, side, side, tip)
		if m <= numbered {
			p.text(fmt.Sprintf("cell mid t%d", level), x+side/2, y+side/2+3.5, number(v/per))
		}
	}
	for i := range paths {
		p.path(fmt.Sprintf("heat h%d", i), paths[i].String(), "")
	}
	step := max(1, (m+15)/16)
	for i := 0; i < m; i += step {
		at := side * (float64(i) + 0.5)
		p.text("label end", left-5, top+at+4, short(names[i*each], 6))
	}
	step = max(1, int(math.Ceil(36/side)))
	if side >= 26 {
		step = 1
	}
	for i := 0; i < m; i += step {
		p.text("label mid", left+side*(float64(i)+0.5), top-6, short(names[i*each], 5))
	}
	p.text("tick", 0, 12, "the slower way")
	bottom := top + side*float64(m)
	p.legend(scale, bottom+14, unit)
	p.H = num(bottom + 42)
	p.Text = fmt.Sprintf("%s in %s. The best is %s from %s to %s, the worst %s from %s to %s.", count(len(values)/2, "pair", "pairs"),
		unitName, human(values[best], unit), names[best.from], names[best.to], human(values[worst], unit), names[worst.from], names[worst.to])
	if each > 1 {
		p.Caption += fmt.Sprintf(" A cell is of %d by %d nodes and shows the worst pair that was measured among them.", each, each)
	}
	return p
}

// worstOf finds the ends of a map; the first of equal ones.
func worstOf(values map[link]float64, less bool) (best, worst link) {
	first := true
	for l, v := range values {
		before := func(o link) bool { return l.from < o.from || l.from == o.from && l.to < o.to }
		if first {
			best, worst, first = l, l, false
			continue
		}
		if b := values[best]; v != b && (v < b) == less || v == b && before(best) {
			best = l
		}
		if w := values[worst]; v != w && (v > w) == less || v == w && before(worst) {
			worst = l
		}
	}
	return best, worst
}

// heatScale reports how dark a value is. Where all are nearly alike, all are light:
// the scale spans a factor of one and a half at least.
type heatScale struct {
	lo, hi float64
	less   bool
}

const leastSpan = 1.5

func (s heatScale) ends() (good, bad float64) {
	if s.less {
		return s.lo, max(s.hi, s.lo*leastSpan)
	}
	return s.hi, min(s.lo, s.hi/leastSpan)
}

func (s heatScale) level(v float64) int {
	good, bad := s.ends()
	if !(good > 0 && bad > 0 && v > 0) {
		return 0
	}
	share := math.Log(v/good) / math.Log(bad/good)
	if math.IsNaN(share) {
		return 0
	}
	return min(max(int(share*levels), 0), levels-1)
}

// legend draws the scale below a map.
func (p *picture) legend(s heatScale, y float64, unit string) {
	good, bad := s.ends()
	const left, box = 44.0, 24.0
	for i := range levels {
		p.rect(fmt.Sprintf("heat h%d", i), left+box*float64(i), y, box, 9, "")
	}
	p.text("tick", left, y+21, human(good, unit))
	p.text("tick end", left+box*levels, y+21, human(bad, unit))
	p.text("tick", left+box*levels+8, y+9, "darker is slower")
}

// pairFigures are the figures of pairs, by metric and size, as numbers of nodes.
func pairFigures(c muster.Certificate, names []string) map[figureKey]map[link]float64 {
	if c.Pairs == nil {
		return nil
	}
	at := make(map[string]int, len(names))
	for i, n := range names {
		at[n] = i
	}
	out := map[figureKey]map[link]float64{}
	for _, f := range c.Pairs.Figures {
		from, ok := at[f.From]
		to, ok2 := at[f.To]
		if !ok || !ok2 || from == to || len(finite(f.Value)) == 0 {
			continue
		}
		k := figureKey{Name: f.Metric, Size: f.Size}
		if out[k] == nil {
			out[k] = map[link]float64{}
		}
		out[k][link{from, to}] = f.Value
	}
	for _, values := range out {
		for l, v := range values {
			if _, ok := values[link{l.to, l.from}]; !ok {
				values[link{l.to, l.from}] = v
			}
		}
	}
	return out
}
