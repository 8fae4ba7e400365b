package simulate

import (
	"fmt"
	"math"
	"strings"
)

// Picture draws results beside each other as one SVG: the machines in use over time, and how
// many jobs waited for how long.
func Picture(list []Result) string {
	const width, height, left, top = 900, 240, 60, 40
	colors := []string{"#888888", "#d08000", "#2060c0", "#208040"}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width+left+20, 2*(height+top)+60)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	frame := func(y int, title string) {
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-weight="bold">%s</text><rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#cccccc"/>`+"\n", left, y-8, title, left, y, width, height)
	}
	line := func(i, y int, points []float64, last int) { // each between 0 and 1
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, colors[i%len(colors)])
		for k, v := range points {
			fmt.Fprintf(&b, "%.1f,%.1f ", float64(left)+float64(width)*float64(k)/float64(max(last, 1)), float64(y)+float64(height)*(1-min(max(v, 0), 1)))
		}
		b.WriteString(`"/>` + "\n")
	}
	y := top
	frame(y, "machines in use, by day")
	for i, r := range list {
		days := make([]float64, (len(r.UseOverTime)+23)/24)
		for h, v := range r.UseOverTime {
			days[h/24] += v / 24
		}
		line(i, y, days, len(days)-1)
	}
	for k := 0; k <= 4; k++ {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%d %%</text>`+"\n", left-6, y+height-height*k/4+4, 25*k)
	}
	y += height + top + 20
	frame(y, "share of jobs that waited no longer than")
	const most = 7 * 24 * 60 // minutes, on a logarithmic axis
	marks := []struct {
		minutes int
		text    string
	}{{1, "1 min"}, {10, "10 min"}, {60, "1 h"}, {8 * 60, "8 h"}, {24 * 60, "1 d"}, {most, "7 d"}}
	for _, m := range marks {
		x := float64(left) + width*math.Log1p(float64(m.minutes))/math.Log1p(most)
		fmt.Fprintf(&b, `<line x1="%.0f" y1="%d" x2="%.0f" y2="%d" stroke="#eeeeee"/><text x="%.0f" y="%d" text-anchor="middle">%s</text>`+"\n", x, y, x, y+height, x, y+height+16, m.text)
	}
	for i, r := range list {
		points := make([]float64, 201)
		k := 0
		for n := range points {
			limit := math.Expm1(float64(n) / 200 * math.Log1p(most)) // minutes
			for k < len(r.Waits) && r.Waits[k].Minutes() <= limit {
				k++
			}
			points[n] = float64(k) / float64(max(len(r.Waits), 1))
		}
		line(i, y, points, 200)
	}
	for i, r := range list {
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", left+i*120, y+height+36, colors[i%len(colors)], r.Policy)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
