package topology

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// Line is one stand in a drawing of a tree as text.
type Line struct {
	Branch string // "│  ├─ "
	Stand  wire.TopologyStand
}

// Lines draw a tree, which is listed so that what stands in another comes after it.
func Lines(stands []wire.TopologyStand) []Line {
	// last reports whether no stand of a depth follows before one further out.
	last := make([]bool, len(stands))
	open := map[int]bool{}
	for i := len(stands) - 1; i >= 0; i-- {
		d := stands[i].Depth
		last[i] = !open[d]
		open[d] = true
		for deeper := range open {
			if deeper > d {
				delete(open, deeper)
			}
		}
	}
	out := make([]Line, len(stands))
	var ended []bool // by depth: the stand that it is in was the last
	for i, s := range stands {
		ended = append(ended[:min(len(ended), s.Depth)], last[i])
		var b strings.Builder
		for d := 1; d < s.Depth; d++ {
			b.WriteString(map[bool]string{true: "   ", false: "│  "}[d < len(ended) && ended[d]])
		}
		if s.Depth > 0 {
			b.WriteString(map[bool]string{true: "└─ ", false: "├─ "}[last[i]])
		}
		out[i] = Line{Branch: b.String(), Stand: s}
	}
	return out
}

// Sizes of the drawing, in pixels.
const (
	boxWidth, boxHeight = 190, 40
	columnGap, rowGap   = 110, 14
	margin              = 16
)

// Draw draws a tree as one SVG file that needs nothing else: from left to right, with the
// capacity of each uplink at its line.
func Draw(w io.Writer, stands []wire.TopologyStand) error {
	x, y, parent := layout(stands)
	width, height := 2*margin+boxWidth, 2*margin+boxHeight
	for i := range stands {
		width, height = max(width, x[i]+boxWidth+margin), max(height, y[i]+boxHeight+margin)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Where machines stand">`+"\n", width, height, width, height)
	b.WriteString("<style>text{font:13px sans-serif;fill:#111} .small{font-size:11px;fill:#555} .box{fill:#f4f6f8;stroke:#556;stroke-width:1} .chassis{fill:#fff} .leaf{fill:#e8f1e4} .spine{fill:#e4ebf5} .registered{stroke-dasharray:4 3} line,path{stroke:#556;fill:none} @media (prefers-color-scheme:dark){text{fill:#eee} .small{fill:#aab} .box{fill:#223} .leaf{fill:#243524} .spine{fill:#23304a} .chassis{fill:#111}}</style>\n")
	for i, s := range stands {
		p := parent[i]
		if p < 0 {
			continue
		}
		x1, y1, x2, y2 := x[p]+boxWidth, y[p]+boxHeight/2, x[i], y[i]+boxHeight/2
		mid := x1 + (x2-x1)/4
		fmt.Fprintf(&b, `<path d="M%d %dH%dV%dH%d" stroke-width="%d"/>`+"\n", x1, y1, mid, y2, x2, 1+min(3, len(fmt.Sprint(s.Uplink/1e9))-1))
		if text := LinkText(s.Stand); text != "" {
			fmt.Fprintf(&b, `<text class="small" x="%d" y="%d">%s</text>`+"\n", mid+4, y2-4, text)
		}
	}
	for i, s := range stands {
		class := "box " + string(s.Kind)
		if s.Registered {
			class += " registered"
		}
		name, what := s.Name, string(s.Kind)
		if name == "" {
			name, what = "place not known", ""
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="4"/>`+"\n", escape(class), x[i], y[i], boxWidth, boxHeight)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", x[i]+8, y[i]+16, escape(clip(name, 26)))
		text := strings.TrimPrefix(fmt.Sprintf("%s, %d of %d free", what, s.Free, s.Below), ", ")
		if s.Machines != "" {
			text = strings.TrimPrefix(what+" "+s.Machines, " ")
		}
		fmt.Fprintf(&b, `<text class="small" x="%d" y="%d">%s</text>`+"\n", x[i]+8, y[i]+32, escape(clip(text, 32)))
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// layout gives each stand its place, and finds in which other one it stands; -1: in none.
func layout(stands []wire.TopologyStand) (x, y, parent []int) {
	x, y, parent = make([]int, len(stands)), make([]int, len(stands)), make([]int, len(stands))
	var way []int
	for i, s := range stands {
		way = append(way[:min(len(way), s.Depth)], i)
		parent[i] = -1
		if len(way) > 1 {
			parent[i] = way[len(way)-2]
		}
		x[i] = margin + (len(way)-1)*(boxWidth+columnGap)
	}
	// Those without others below have rows of their own; others are in the middle of theirs.
	row := margin
	first, last := make([]int, len(stands)), make([]int, len(stands))
	for i := range stands {
		first[i] = -1
	}
	for i := range stands {
		if i+1 < len(stands) && parent[i+1] == i {
			continue
		}
		y[i] = row
		row += boxHeight + rowGap
	}
	for i := len(stands) - 1; i >= 0; i-- {
		if first[i] >= 0 {
			y[i] = (first[i] + last[i]) / 2
		}
		if p := parent[i]; p >= 0 {
			if first[p] < 0 {
				last[p] = y[i]
			}
			first[p] = y[i]
		}
	}
	return x, y, parent
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // to memory
	return b.String()
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
