package page

import (
	"fmt"
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
		p.text("tick mid", x.at(v), bottom+16, size(int64(v)))
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

// curve draws a line with its band, and tells how high it ends.
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

// overSizes is a curve of the values of pairs, by size of the message.
func overSizes(sets map[figureKey]map[link]float64, metric string, turn func(size, v float64) float64) []point {
	var list []point
	for k, values := range sets {
		if k.Name != metric || k.Size <= 0 || len(values) == 0 {
			continue
		}
		var all []float64
		for _, v := range values {
			all = append(all, turn(float64(k.Size), v))
		}
		list = append(list, point{float64(k.Size), slices.Min(all), middle(all), slices.Max(all)})
	}
	return list
}

// tierCurves are curves of what certificates sum up by distance.
func tierCurves(list []figure, metric string, turn func(size, v float64) float64) []curve {
	at := map[string]int{}
	var out []curve
	for _, f := range list {
		if f.figureKey.Name != metric || f.Size <= 0 || len(f.Rows) == 0 {
			continue
		}
		i, ok := at[f.Distance]
		if !ok {
			i = len(out)
			at[f.Distance] = i
			out = append(out, curve{Text: apart(f.Distance), Class: fmt.Sprintf("c%d", i%4), Sign: i})
		}
		m := f.Rows[0].Metric
		a, b := turn(float64(f.Size), m.Min), turn(float64(f.Size), m.Max)
		out[i].Points = append(out[i].Points, point{float64(f.Size), min(a, b), turn(float64(f.Size), m.Median), max(a, b)})
	}
	return out
}

// messageCharts are the time and the bandwidth of messages by their size.
func messageCharts(sets map[figureKey]map[link]float64, tiers []figure) []picture {
	same := func(_, v float64) float64 { return v }
	took := func(size, v float64) float64 { return size / v }
	var out []picture
	keep := func(c chart) {
		if p, ok := c.draw(); ok {
			out = append(out, p)
		}
	}
	speed := chart{picture: picture{Title: "Bandwidth by size of message", W: half, H: 270,
		Caption: "The line is the median of all pairs, and the band reaches from the slowest to the fastest pair. Small messages are bound by their latency, large ones by the wire."}, Unit: "B/s", Right: 74}
	speed.Curves = tierCurves(tiers, "pair.bandwidth", same)
	if !several(speed.Curves) {
		speed.Curves = []curve{{Text: "one way", Class: "c0", Sign: 0, Points: overSizes(sets, "pair.bandwidth", same)}}
	}
	if both := overSizes(sets, "pair.both", same); len(both) > 0 {
		speed.Curves = append(speed.Curves, curve{Text: "both ways", Class: next(speed.Curves), Sign: len(speed.Curves), Points: both})
	}
	speed.Text = spoken(speed.Curves, "B/s")
	time := chart{picture: picture{Title: "Time of a message by its size", W: half, H: 270,
		Caption: "Alone: half of the way there and back. In a stream: the size divided by the bandwidth, with several messages on their way at once."}, Unit: "s", Right: 74}
	time.Curves = tierCurves(tiers, "pair.latency", same)
	if len(time.Curves) == 0 {
		time.Curves = []curve{{Text: "alone", Class: "c0", Sign: 0, Points: overSizes(sets, "pair.latency", same)}}
	}
	time.Curves = append(time.Curves, curve{Text: "in a stream", Class: next(time.Curves), Sign: len(time.Curves), Points: overSizes(sets, "pair.bandwidth", took)})
	time.Text = spoken(time.Curves, "s")
	keep(time)
	keep(speed)
	return out
}

// next is the look of one more curve.
func next(list []curve) string { return fmt.Sprintf("c%d", len(list)%4) }

// several tells whether some curve has more than one point.
func several(list []curve) bool {
	return slices.ContainsFunc(list, func(c curve) bool { return len(c.Points) > 1 })
}

// spoken says in words what curves show.
func spoken(list []curve, unit string) string {
	text := ""
	for _, c := range list {
		if len(c.Points) == 0 {
			continue
		}
		lo := slices.MinFunc(c.Points, func(a, b point) int { return int(math.Copysign(1, a.X-b.X)) })
		hi := slices.MaxFunc(c.Points, func(a, b point) int { return int(math.Copysign(1, a.X-b.X)) })
		if text != "" {
			text += " "
		}
		text += fmt.Sprintf("%s: %s at %s, %s at %s.", c.Text, human(lo.Mid, unit), size(int64(lo.X)), human(hi.Mid, unit), size(int64(hi.X)))
	}
	return text
}
