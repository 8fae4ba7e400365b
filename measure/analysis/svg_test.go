package analysis_test

import (
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// picture writes SVG: panels side by side, with a logarithmic axis of nodes.
type picture struct {
	b             strings.Builder
	width, height int
}

func newPicture(width, height int, title string) *picture {
	p := &picture{width: width, height: height}
	fmt.Fprintf(&p.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&p.b, `<title>%s</title>`+"\n"+`<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n", title)
	return p
}

func (p *picture) text(x, y float64, anchor, s string) {
	fmt.Fprintf(&p.b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#222222">%s</text>`+"\n", x, y, anchor, s)
}

func (p *picture) end() string { return p.b.String() + "</svg>\n" }

// panel is one diagram: shares from 0 to top over the number of nodes.
type panel struct {
	p                   *picture
	left, up, wide, low float64 // of the frame
	top                 float64
}

func (p *picture) panel(left, up, wide, high float64, title string, top float64, ticks []float64) panel {
	d := panel{p, left, up, wide, up + high, top}
	p.text(left+wide/2, up-10, "middle", title)
	for _, v := range ticks {
		fmt.Fprintf(&p.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`+"\n", left, d.y(v), left+wide, d.y(v))
		p.text(left-6, d.y(v)+4, "end", fmt.Sprintf("%.0f %%", 100*v))
	}
	for _, n := range []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024} {
		fmt.Fprintf(&p.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#eeeeee"/>`+"\n", d.x(n), up, d.x(n), d.low)
		if n != 512 && n != 256 && n != 64 && n != 8 || wide > 400 {
			p.text(d.x(n), d.low+16, "middle", fmt.Sprint(n))
		}
	}
	p.text(left+wide/2, d.low+34, "middle", "nodes")
	fmt.Fprintf(&p.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#888888"/>`+"\n", left, up, wide, high)
	return d
}

func (d panel) x(nodes int) float64 { return d.left + d.wide*(math.Log2(float64(nodes))-1)/9 }

func (d panel) y(v float64) float64 { return d.low - (d.low-d.up)*math.Min(v, d.top)/d.top }

// line draws a curve with its intervals, and its name at the right end.
func (d panel) line(points []point, of func(point) shares, colour, name string) {
	var path, band strings.Builder
	for i, q := range points {
		c := "L"
		if i == 0 {
			c = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f ", c, d.x(q.nodes), d.y(of(q).value()))
		fmt.Fprintf(&band, "%s%.1f %.1f ", c, d.x(q.nodes), d.y(of(q).interval().High))
	}
	for i := len(points) - 1; i >= 0; i-- {
		fmt.Fprintf(&band, "L%.1f %.1f ", d.x(points[i].nodes), d.y(of(points[i]).interval().Low))
	}
	fmt.Fprintf(&d.p.b, `<path d="%sZ" fill="%s" fill-opacity="0.15"/>`+"\n"+`<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n",
		band.String(), colour, strings.TrimSpace(path.String()), colour)
	for _, q := range points {
		fmt.Fprintf(&d.p.b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"><title>%d nodes, %s: %d of %d</title></circle>`+"\n",
			d.x(q.nodes), d.y(of(q).value()), colour, q.nodes, name, of(q).seen, of(q).runs)
	}
}

// key names colours.
func (p *picture) key(x, y float64, names, colours []string) {
	for i, n := range names {
		fmt.Fprintf(&p.b, `<rect x="%.1f" y="%.1f" width="14" height="10" fill="%s"/>`+"\n", x, y+float64(18*i), colours[i])
		p.text(x+20, y+9+float64(18*i), "start", n)
	}
}

func colours() []string {
	return []string{"#999999", "#c7a500", "#e07b00", "#c0392b", "#8e44ad", "#2460a7", "#1e8449"}
}

// powerPicture has how often a culprit is found, a panel for each way of looking.
func powerPicture(curves map[world][]point) string {
	p := newPicture(980, 770, "How often a defect is found, by its size and the number of nodes")
	for i, w := range worlds() {
		d := p.panel(60+float64(i%2)*410, 40+float64(i/2)*380, 360, 290, string(w), 1, []float64{0, 0.25, 0.5, 0.75, 1})
		for k, defect := range w.defects() {
			if k > 0 {
				d.line(curves[w], func(q point) shares { return q.found[k] }, colourOf(defect), fmt.Sprintf("%.0f %% missing", 100*defect))
			}
		}
	}
	var names, shown []string
	for _, defect := range byPeers.defects()[1:] {
		names, shown = append(names, fmt.Sprintf("%.0f %% missing", 100*defect)), append(shown, colourOf(defect))
	}
	p.key(850, 50, names, shown)
	return p.end()
}

func colourOf(defect float64) string {
	for i, d := range byPeers.defects() {
		if math.Abs(d-defect) < 1e-9 {
			return colours()[i]
		}
	}
	return "#000000"
}

// alarmPicture has how often somebody is suspected where nothing is wrong.
func alarmPicture(curves map[world][]point) string {
	p := newPicture(720, 400, "How often somebody is suspected where nothing is wrong, by the number of nodes")
	d := p.panel(60, 40, 640, 300, "somebody is suspected where nothing is wrong", 0.2, []float64{0, 0.05, 0.1, 0.15, 0.2})
	var names, shown []string
	for i, w := range worlds()[:3] { // links are of the same measuring as messages
		name := map[world]string{byPeers: "nodes beside their peers", byHistory: "nodes with a history", byPairs: "messages between nodes"}[w]
		colour := colours()[[]int{5, 6, 3}[i]]
		d.line(curves[w], func(q point) shares { return q.alarm }, colour, name)
		names, shown = append(names, name), append(shown, colour)
	}
	p.key(530, 52, names, shown)
	return p.end()
}

// The pictures are well-formed, with and without curves.
func TestPictures(t *testing.T) {
	t.Parallel()
	curves := map[world][]point{}
	for _, w := range worlds() {
		p, err := w.curve(4, 3, 5)
		if err != nil {
			t.Fatal(err)
		}
		curves[w] = []point{p}
	}
	texts := []string{powerPicture(nil), alarmPicture(nil), powerPicture(curves), alarmPicture(curves)}
	for _, name := range []string{"power", "false-alarms"} {
		b, err := os.ReadFile("../../docs/users/pictures/" + name + ".svg")
		if err != nil {
			t.Error(err)
		}
		texts = append(texts, string(b))
	}
	for i, text := range texts {
		if err := xml.Unmarshal([]byte(text), new(struct {
			XMLName xml.Name `xml:"svg"`
		})); err != nil || strings.Contains(text, "NaN") {
			t.Errorf("%d: %v", i, err)
		}
	}
}
