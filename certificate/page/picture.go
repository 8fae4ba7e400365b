package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// picture is a drawing in SVG. The template writes it, so that no text of a
// certificate becomes markup. Colours are classes, for light, dark and paper.
type picture struct {
	Title   string
	Caption string // what it is
	Text    string // what it shows, for those who do not see it
	Class   string
	W, H    num
	Shapes  []shape
}

// shape is one thing that is drawn.
type shape struct {
	Kind       string // rect, line, path, text
	Class      string
	X, Y, W, H num // of a line: its ends
	D          string
	Text       string
	Tip        string
}

// num is a length in a picture. Tenths are enough for eyes.
type num float64

func (n num) String() string {
	v := math.Round(10*float64(n)) / 10
	if math.IsNaN(v) || math.Abs(v) > 1e6 {
		v = 0
	}
	if v == 0 {
		v = 0 // not -0
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func (p *picture) rect(class string, x, y, w, h float64, tip string) {
	p.Shapes = append(p.Shapes, shape{Kind: "rect", Class: class, X: num(x), Y: num(y), W: num(max(w, 0)), H: num(max(h, 0)), Tip: tip})
}

func (p *picture) line(class string, x1, y1, x2, y2 float64) {
	p.Shapes = append(p.Shapes, shape{Kind: "line", Class: class, X: num(x1), Y: num(y1), W: num(x2), H: num(y2)})
}

func (p *picture) text(class string, x, y float64, text string) {
	p.Shapes = append(p.Shapes, shape{Kind: "text", Class: class, X: num(x), Y: num(y), Text: text})
}

func (p *picture) path(class, d, tip string) {
	if d != "" {
		p.Shapes = append(p.Shapes, shape{Kind: "path", Class: class, D: d, Tip: tip})
	}
}

// pen writes the way of a path.
type pen struct{ strings.Builder }

func (p *pen) move(x, y float64) { fmt.Fprintf(p, "M%s %s", num(x), num(y)) }
func (p *pen) to(x, y float64)   { fmt.Fprintf(p, "L%s %s", num(x), num(y)) }
func (p *pen) across(x float64)  { fmt.Fprintf(p, "H%s", num(x)) }
func (p *pen) down(y float64)    { fmt.Fprintf(p, "V%s", num(y)) }
func (p *pen) close()            { p.WriteString("Z") }
func (p *pen) box(x, y, w, h float64) {
	p.move(x, y)
	p.across(x + w)
	p.down(y + h)
	p.across(x)
	p.close()
}

// mark draws one of several signs that can be told apart without colours.
func (p *pen) mark(kind int, x, y, r float64) {
	switch kind % 4 {
	case 0:
		p.move(x-r, y)
		fmt.Fprintf(p, "a%s %s 0 1 0 %s 0a%s %s 0 1 0 %s 0", num(r), num(r), num(2*r), num(r), num(r), num(-2*r))
	case 1:
		p.box(x-r, y-r, 2*r, 2*r)
	case 2:
		p.move(x, y-1.3*r)
		p.to(x+1.3*r, y)
		p.to(x, y+1.3*r)
		p.to(x-1.3*r, y)
	case 3:
		p.move(x-1.2*r, y-r)
		p.to(x+1.2*r, y-r)
		p.to(x, y+1.2*r)
	}
	p.close()
}

// axis turns values into places.
type axis struct {
	lo, hi   float64 // values
	from, to float64 // places
	log      bool
}

// at is the place of a value; what lies outside is put at the end.
func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		if v <= 0 {
			return a.from
		}
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	if !(hi > lo) {
		return (a.from + a.to) / 2
	}
	share := (v - lo) / (hi - lo)
	return a.from + min(max(share, 0), 1)*(a.to-a.from)
}

// ticks are round values on the axis, about as many as asked for.
func (a axis) ticks(about int) []float64 {
	if !(a.hi > a.lo) || math.IsInf(a.hi-a.lo, 0) {
		return nil
	}
	var list []float64
	if a.log && a.hi < 4*a.lo {
		a.log = false
		return a.ticks(about)
	}
	if a.log && (a.lo < 1e-300 || a.hi > 1e300) {
		return nil
	}
	if a.log {
		decades := math.Log10(a.hi / a.lo)
		steps := []float64{1, 2, 5}
		if decades > float64(about)/2 {
			steps = []float64{1}
		}
		skip := max(1, int(decades)/about)
		for e := int(math.Floor(math.Log10(a.lo))); e <= int(math.Ceil(math.Log10(a.hi))); e += skip {
			for _, s := range steps {
				if v := s * math.Pow(10, float64(e)); v >= a.lo*(1-1e-9) && v <= a.hi*(1+1e-9) {
					list = append(list, v)
				}
			}
		}
		return list
	}
	raw := (a.hi - a.lo) / float64(about)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, s := range []float64{1, 2, 5, 10} {
		if s*step >= raw*(1-1e-9) {
			step *= s
			break
		}
	}
	for i := math.Ceil(a.lo / step); i*step <= a.hi*(1+1e-9) && len(list) < 50; i++ {
		list = append(list, i*step)
	}
	return list
}

// doublings are powers of two on the axis, about as many as asked for.
func (a axis) doublings(about int) []float64 {
	if !(a.lo > 0) || !(a.hi > a.lo) {
		return nil
	}
	first, last := math.Ceil(math.Log2(a.lo)), math.Floor(math.Log2(a.hi))
	step := math.Max(1, math.Ceil((last-first+1)/float64(about)))
	var list []float64
	for e := first; e <= last; e += step {
		list = append(list, math.Exp2(e))
	}
	return list
}
