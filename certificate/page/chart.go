package page

import (
	"math"
	"slices"
)

// chart is curves over sizes, both axes logarithmic.
type chart struct {
	picture
	Unit   string
	Marks  []mark
	Curves []curve
	Right  float64 // room for names of curves
	// Along writes a place on the axis; nil: it is a size.
	Along func(float64) string
}

// mark is a size that means something, such as that of a cache.
type mark struct {
	At   float64
	Text string
}

// curve is one line of a chart.
type curve struct {
	Text   string // at its end; none for one of many
	Class  string
	Sign   int // which mark its points have; -1: none
	Points []point
}

// point is a value at a size; Lo and Hi are what a band reaches over.
type point struct{ X, Lo, Mid, Hi float64 }

// draw finishes the picture; false if there is nothing that can be drawn.
func (c chart) draw() (picture, bool) {
	p := c.picture
	left, top := 58.0, 22.0
	right := float64(p.W) - c.Right - 8
	bottom := float64(p.H) - 36
	x := axis{lo: math.Inf(1), hi: math.Inf(-1), from: left, to: right, log: true}
	y := axis{lo: math.Inf(1), hi: math.Inf(-1), from: bottom, to: top, log: true}
	for i := range c.Curves {
		cv := &c.Curves[i]
		cv.Points = slices.DeleteFunc(slices.Clone(cv.Points), func(q point) bool {
			return !(q.X > 0 && q.Lo > 0 && q.Mid > 0 && q.Hi > 0) || len(finite(q.X, q.Lo, q.Mid, q.Hi)) < 4
		})
		slices.SortStableFunc(cv.Points, func(a, b point) int {
			if a.X < b.X {
				return -1
			} else if a.X > b.X {
				return 1
			}
			return 0
		})
		for _, q := range cv.Points {
			x.lo, x.hi = min(x.lo, q.X), max(x.hi, q.X)
			y.lo, y.hi = min(y.lo, q.Lo), max(y.hi, q.Hi)
		}
	}
	if !(x.hi > x.lo) || !(y.hi >= y.lo) {
		return p, false
	}
	y.lo, y.hi = y.lo/1.25, y.hi*1.25
	for _, v := range y.ticks(6) {
		p.line("grid", left, y.at(v), right, y.at(v))
		p.text("tick end", left-6, y.at(v)+4, tickUnit(v, c.Unit))
	}
	for _, v := range x.doublings(7) {
		p.line("grid", x.at(v), bottom, x.at(v), bottom+4)
		p.text("tick mid", x.at(v), bottom+16, c.along(v))
	}
	p.line("axis", left, bottom, right, bottom)
	for i, m := range c.Marks {
		if m.At > x.lo && m.At < x.hi {
			p.line("mark", x.at(m.At), top, x.at(m.At), bottom)
			p.text("note end", x.at(m.At)-4, top+8+float64(i%2)*12, m.Text)
		}
	}
	var ends, alone []end // of lines, and of single points
	beside := 0.0
	for _, cv := range c.Curves {
		if len(cv.Points) == 0 {
			continue
		}
		last := p.curve(cv, x, y)
		if cv.Text != "" && len(cv.Points) == 1 {
			alone = append(alone, end{cv.Text, cv.Class, last})
			beside = x.at(cv.Points[0].X) + 7
		} else if cv.Text != "" {
			ends = append(ends, end{cv.Text, cv.Class, last})
		}
	}
	p.names(ends, right+8, top, bottom)
	p.names(alone, beside, top, bottom)
	return p, true
}

func (c chart) along(v float64) string {
	if c.Along != nil {
		return c.Along(v)
	}
	return size(int64(v))
}

// curve draws a line with its band, and reports how high it ends.
func (p *picture) curve(cv curve, x, y axis) float64 {
	var line, band, signs pen
	wide := false
	for i, q := range cv.Points {
		if i == 0 {
			line.move(x.at(q.X), y.at(q.Mid))
			band.move(x.at(q.X), y.at(q.Hi))
		} else {
			line.to(x.at(q.X), y.at(q.Mid))
			band.to(x.at(q.X), y.at(q.Hi))
		}
		if cv.Sign >= 0 {
			signs.mark(cv.Sign, x.at(q.X), y.at(q.Mid), 2.6)
		}
		wide = wide || q.Hi > q.Lo
	}
	for _, q := range slices.Backward(cv.Points) {
		band.to(x.at(q.X), y.at(q.Lo))
	}
	band.close()
	if wide {
		p.path("band "+cv.Class, band.String(), "")
	}
	p.path("curve "+cv.Class, line.String(), cv.Text)
	p.path("sign "+cv.Class, signs.String(), "")
	return y.at(cv.Points[len(cv.Points)-1].Mid)
}

// end is where a curve ends, with its name.
type end struct {
	text, class string
	y           float64
}

// names writes the names of curves beside their ends, so that none covers another.
func (p *picture) names(ends []end, x, top, bottom float64) {
	const apart = 13
	slices.SortStableFunc(ends, func(a, b end) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	for i := range ends {
		if i > 0 {
			ends[i].y = max(ends[i].y, ends[i-1].y+apart)
		}
	}
	for i := len(ends) - 1; i >= 0; i-- {
		limit := bottom
		if i+1 < len(ends) {
			limit = ends[i+1].y - apart
		}
		ends[i].y = max(min(ends[i].y, limit), top)
	}
	for _, e := range ends {
		p.text("name "+e.class, x, e.y+4, short(e.text, 22))
	}
}
