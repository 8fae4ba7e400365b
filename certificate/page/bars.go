package page

import (
	"fmt"
	"math"

	"github.com/muster-hpc/muster"
)

// mostRows are the nodes that get a bar each; more become dots.
const mostRows = 40

// half and full are the widths of pictures: two beside each other, or one.
const half, full = 430, 880

// bars draws one figure of each node: the median as a bar from zero, its interval,
// the extremes, and what it should be.
func bars(f figure) picture {
	if len(f.Rows) > mostRows {
		return dots(f)
	}
	p := picture{Title: f.Label(), Caption: f.What, Text: f.summary(), W: half}
	const right, top = 322.0, 20.0
	names := make([]string, len(f.Rows))
	for i, r := range f.Rows {
		names[i] = r.Node
	}
	left := gutter(names)
	each := 19.0
	if len(f.Rows) > 16 {
		each = 13
	}
	var hi float64
	for _, r := range f.Rows {
		hi = max(hi, r.Median)
		if r.Interval != nil {
			hi = max(hi, r.Interval.High)
		}
		if r.Reference != nil && r.Reference.Source != muster.SourcePeak {
			hi = max(hi, r.Reference.Value)
		}
	}
	peak := f.peak()
	if peak > 2*hi {
		peak = 0 // so far off that it would hide everything else
	}
	hi = max(hi, peak)
	// Extremes may be far out, and must not squeeze everything else.
	most := hi
	for _, r := range f.Rows {
		most = max(most, min(r.Max, 1.5*hi))
	}
	a := axis{lo: 0, hi: most * 1.04, from: left, to: right}
	bottom := top + each*float64(len(f.Rows))
	per, unit := scaled(f.Unit, hi)
	for _, v := range a.ticks(4) {
		p.line("grid", a.at(v), top-3, a.at(v), bottom)
		p.text("tick mid", a.at(v), bottom+13, tick(v/per))
	}
	p.text("tick", right+8, bottom+13, unit)
	clipped := false
	for i, r := range f.Rows {
		y := top + each*(float64(i)+0.5)
		thick := each * 0.5
		class := gradeClass(r.Verdict)
		p.text("label end", left-7, y+4, short(r.Node, 10))
		p.rect("bar "+class, left, y-thick/2, a.at(r.Median)-left, thick, rowTip(f, r))
		end := a.at(r.Max)
		p.line("extremes", a.at(r.Min), y, end, y)
		p.line("extremes", a.at(r.Min), y-3, a.at(r.Min), y+3)
		if r.Max > a.hi {
			clipped = true
			p.path("extremes", fmt.Sprintf("M%s %sl4 3l-4 3", num(end-4), num(y-3)), "")
		} else {
			p.line("extremes", end, y-3, end, y+3)
		}
		if v := r.Interval; v != nil {
			p.rect("interval", a.at(v.Low), y-2, max(a.at(v.High)-a.at(v.Low), 1.5), 4, "")
		}
		if r.Reference != nil && r.Reference.Source != muster.SourcePeak {
			x := a.at(r.Reference.Value)
			p.line("reference", x, y-each/2, x, y+each/2)
		}
		text := human(r.Median, f.Unit)
		p.text("value "+class, right+8, y+4, text)
		if r.Verdict == muster.GradeLow || r.Verdict == muster.GradeUnstable {
			p.text("value end "+class, half, y+4, gradeSign(r.Verdict))
		}
	}
	if ref := f.reference(); ref != nil {
		x := a.at(ref.Value)
		class := "note end"
		at := x - 4
		if x < (left+right)/2 {
			class, at = "note", x+4
		}
		p.line("reference", x, top-14, x, top)
		p.text(class, at, top-7, "expected "+human(ref.Value, f.Unit))
	}
	if x := a.at(peak); peak > 0 {
		p.line("peak", x, top-14, x, bottom)
		p.text("note", x+4, top-7, "peak "+human(peak, f.Unit))
		p.Text += " In theory " + human(peak, f.Unit) + " is possible."
	}
	if clipped {
		p.Text += " An arrow marks extremes that lie outside the picture."
	}
	p.H = num(bottom + 20)
	return p
}

// peak is what theory allows; 0 if that is not known or not the same for all.
func (f figure) peak() float64 {
	peak := 0.0
	for _, r := range f.Rows {
		list := r.Others
		if r.Reference != nil {
			list = append([]muster.Reference{*r.Reference}, list...)
		}
		one := 0.0
		for _, v := range list {
			if v.Source == muster.SourcePeak {
				one = v.Value
			}
		}
		if one <= 0 || peak > 0 && one != peak || len(finite(one)) == 0 {
			return 0
		}
		peak = one
	}
	return peak
}

// gutter is the room that the names of nodes need.
func gutter(names []string) float64 {
	most := 0
	for _, n := range names {
		most = max(most, len([]rune(short(n, 10))))
	}
	return 14 + 6*float64(most)
}

// reference is what most nodes are compared with.
func (f figure) reference() *muster.Reference {
	var list []float64
	var one *muster.Reference
	for _, r := range f.Rows {
		if r.Reference != nil && r.Reference.Source != muster.SourcePeak {
			list = append(list, r.Reference.Value)
			one = r.Reference
		}
	}
	if one == nil {
		return nil
	}
	ref := *one
	ref.Value = middle(list)
	return &ref
}

func rowTip(f figure, r figureRow) string {
	text := r.Node + ": " + human(r.Median, f.Unit)
	if v := r.Interval; v != nil {
		text += fmt.Sprintf(", with %s between %s", percent(v.Level), between(v.Low, v.High, f.Unit))
	}
	text += ", extremes " + between(r.Min, r.Max, f.Unit)
	if r.Reference != nil {
		text += ", expected " + human(r.Reference.Value, f.Unit)
	}
	return text + ": " + gradeText(r.Verdict)
}

// dots draws one figure of many nodes, in their order. The axis does not begin at
// zero, for differences between so many could not be seen.
func dots(f figure) picture {
	p := picture{Title: f.Label(), Caption: f.What, Text: f.summary(), W: full, Class: "wide"}
	const left, right, top, bottom = 66.0, 860.0, 16.0, 156.0
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, r := range f.Rows {
		lo, hi = min(lo, r.Median), max(hi, r.Median)
		if v := r.Interval; v != nil {
			lo, hi = min(lo, v.Low), max(hi, v.High)
		}
		if v := r.Reference; v != nil && v.Source != muster.SourcePeak {
			lo, hi = min(lo, v.Value), max(hi, v.Value)
		}
	}
	margin := max((hi-lo)*0.06, math.Abs(hi)*0.005)
	a := axis{lo: lo - margin, hi: hi + margin, from: bottom, to: top}
	x := axis{lo: -0.5, hi: float64(len(f.Rows)) - 0.5, from: left, to: right}
	per, unit := scaled(f.Unit, hi)
	for _, v := range a.ticks(5) {
		p.line("grid", left, a.at(v), right, a.at(v))
		p.text("tick end", left-6, a.at(v)+4, tick(v/per))
	}
	p.text("tick", 0, top-4, unit)
	var extremes, intervals pen
	medians := map[string]*pen{}
	named := 0
	for i, r := range f.Rows {
		at := x.at(float64(i))
		extremes.move(at, a.at(r.Min))
		extremes.down(a.at(r.Max))
		if v := r.Interval; v != nil {
			intervals.move(at, a.at(v.Low))
			intervals.down(a.at(v.High))
		}
		class := gradeClass(r.Verdict)
		if medians[class] == nil {
			medians[class] = &pen{}
		}
		y := a.at(r.Median)
		if class != "low" {
			medians[class].box(at-1.2, y-1.2, 2.4, 2.4)
			continue
		}
		medians[class].mark(3, at, y, 3)
		if named++; named <= 12 {
			style := "note low"
			if at > (left+right)/2 {
				style += " end"
				at -= 14
			}
			p.text(style, at+7, y+4, short(r.Node, 14))
		}
	}
	p.path("extremes many", extremes.String(), "")
	p.path("interval-line", intervals.String(), "")
	if ref := f.reference(); ref != nil {
		y := a.at(ref.Value)
		p.line("reference", left, y, right, y)
		p.text("note end", right, top-4, "dashed: expected "+human(ref.Value, f.Unit))
	}
	for _, class := range []string{"unknown", "pass", "unstable", "low"} {
		if m := medians[class]; m != nil {
			p.path("dot "+class, m.String(), "")
		}
	}
	p.text("tick", left, bottom+15, short(f.Rows[0].Node, 20))
	p.text("tick end", right, bottom+15, short(f.Rows[len(f.Rows)-1].Node, 20))
	p.text("tick mid", (left+right)/2, bottom+15, count(len(f.Rows), "node", "nodes")+"; the axis does not begin at zero, and extremes outside it are cut off")
	p.H = bottom + 24
	return p
}
