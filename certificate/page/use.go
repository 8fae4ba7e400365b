package page

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// mostSteps are drawn of one series; more are averaged.
const mostSteps = 240

// use draws how busy the processors were while it was measured.
func use(list []muster.UseSeries) (picture, bool) {
	p := picture{Title: "Processors busy while measuring", W: full, Class: "wide",
		Caption: "How many cores were busy on each node. Full while all cores calculate, low while nodes wait for messages or for the next launch. Dark is time in the kernel, grey on top time in which a core waited for files. Work where none should be would be somebody else's."}
	var begin, end time.Time
	top := 0.0
	list = slices.DeleteFunc(slices.Clone(list), func(u muster.UseSeries) bool {
		return !(u.Step > 0) || u.Step > 1e7 || len(u.CPU) == 0 || len(finite(u.CPU...)) < len(u.CPU) || u.Start.IsZero() ||
			len(finite(u.System...)) < len(u.System) || len(finite(u.Wait...)) < len(u.Wait)
	})
	for _, u := range list {
		last := u.Start.Add(time.Duration(math.Min(float64(len(u.CPU))*u.Step, 1e8) * float64(time.Second)))
		if begin.IsZero() || u.Start.Before(begin) {
			begin = u.Start
		}
		if last.After(end) {
			end = last
		}
		top = max(top, slices.Max(u.CPU), slices.Max(waiting(u)))
	}
	if top <= 0 || !end.After(begin) {
		return p, false
	}
	var names []string
	for _, u := range list {
		names = append(names, u.Node)
	}
	x := axis{lo: 0, hi: end.Sub(begin).Seconds(), from: gutter(names), to: 836}
	bottom := p.useRows(list, x, begin, top)
	for _, v := range x.ticks(8) {
		p.text("tick mid", x.at(v), bottom+14, tick(v)+" s")
	}
	p.H = num(bottom + 22)
	var means []float64
	for _, u := range list {
		means = append(means, average(u.CPU))
	}
	p.Text = fmt.Sprintf("%s over %s; on average between %s and %s cores were busy on a node, at most %s.",
		count(len(list), "node", "nodes"), human(x.hi, "s"), number(slices.Min(means)), number(slices.Max(means)), number(top))
	return p, true
}

func average(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v / float64(len(list))
	}
	return sum
}

// useRows draws a row for each node, or one for many of them.
func (p *picture) useRows(list []muster.UseSeries, x axis, begin time.Time, top float64) float64 {
	const high, first = 30.0, 14.0
	p.text("tick", x.to+8, first-2, "cores")
	if len(list) > mostLines {
		return p.useBand(list, x, begin, top)
	}
	for i, u := range list {
		base := first + high*float64(i+1) - 4
		y := axis{lo: 0, hi: top, from: base, to: base - high + 8}
		tip := u.Node + ": " + number(average(u.CPU)) + " cores busy on average"
		p.line("grid", x.from, y.at(top), x.to, y.at(top))
		at := u.Start.Sub(begin).Seconds()
		if known(u, u.System) {
			tip += ", " + number(average(u.System)) + " of them in the kernel"
		}
		if known(u, u.Wait) {
			tip += "; " + number(average(u.Wait)) + " waited for files"
			p.path("area waits", steps(waiting(u), at, u.Step, x, y), tip)
		}
		p.path("area", steps(u.CPU, at, u.Step, x, y), tip)
		if known(u, u.System) {
			p.path("area kernel", steps(u.System, at, u.Step, x, y), tip)
		}
		p.line("axis", x.from, base, x.to, base)
		p.text("label end", x.from-7, base-4, short(u.Node, 10))
		if i == 0 {
			p.text("tick", x.to+8, y.at(top)+9, tick(math.Round(100*top)/100))
		}
	}
	return first + high*float64(len(list))
}

// known reports whether a part of what was busy is known in each step, and is not
// nothing.
func known(u muster.UseSeries, list []float64) bool {
	return len(list) == len(u.CPU) && slices.Max(list) > 0
}

// waiting is what was busy and what waited, in sum.
func waiting(u muster.UseSeries) []float64 {
	sum := slices.Clone(u.CPU)
	if len(u.Wait) == len(sum) {
		for i, v := range u.Wait {
			sum[i] += v
		}
	}
	return sum
}

// steps is the area below values of equal length in time, from so many seconds on.
func steps(values []float64, at, step float64, x, y axis) string {
	var area pen
	area.move(x.at(at), y.from)
	each := (len(values) + mostSteps - 1) / mostSteps
	for k := 0; k < len(values); k += each {
		some := values[k:min(k+each, len(values))]
		area.down(y.at(average(some)))
		at += step * float64(len(some))
		area.across(x.at(at))
	}
	area.down(y.from)
	area.close()
	return area.String()
}

// useBand draws many nodes together: all of them, the middle half, the median.
func (p *picture) useBand(list []muster.UseSeries, x axis, begin time.Time, top float64) float64 {
	const first, base = 14.0, 134.0
	y := axis{lo: 0, hi: top, from: base, to: first}
	var all, half [2][]point
	var mid pen
	for k := range mostSteps {
		at := x.hi * (float64(k) + 0.5) / mostSteps
		var values []float64
		for _, u := range list {
			if step := (at - u.Start.Sub(begin).Seconds()) / u.Step; step >= 0 && step < float64(len(u.CPU)) {
				values = append(values, u.CPU[int(step)])
			}
		}
		if len(values) == 0 {
			continue
		}
		for i, q := range [][2]int{{0, 4}, {1, 3}} {
			b := []*[2][]point{&all, &half}[i]
			b[0] = append(b[0], point{X: at, Mid: quarter(values, q[1])})
			b[1] = append(b[1], point{X: at, Mid: quarter(values, q[0])})
		}
		if mid.Len() == 0 {
			mid.move(x.at(at), y.at(middle(values)))
		} else {
			mid.to(x.at(at), y.at(middle(values)))
		}
	}
	for i, b := range [][2][]point{all, half} {
		var area pen
		for k, q := range b[0] {
			if k == 0 {
				area.move(x.at(q.X), y.at(q.Mid))
			} else {
				area.to(x.at(q.X), y.at(q.Mid))
			}
		}
		for _, q := range slices.Backward(b[1]) {
			area.to(x.at(q.X), y.at(q.Mid))
		}
		area.close()
		p.path([]string{"area all", "area"}[i], area.String(), "")
	}
	p.path("curve c0", mid.String(), "")
	p.line("axis", x.from, base, x.to, base)
	for _, v := range y.ticks(4) {
		p.line("grid", x.from, y.at(v), x.to, y.at(v))
		p.text("tick end", x.from-7, y.at(v)+4, tick(v))
	}
	p.Caption += " The light area holds all nodes, the dark one the middle half, and the line is the median."
	return base
}
