package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// sweepTable is all points of one kind of range.
type sweepTable struct {
	Title, Over string
	Rows        []sweepRow
}

type sweepRow struct{ What, At, Median, Mean, Extremes, Samples string }

// mostSweepRows are in a table at most.
const mostSweepRows = 2000

// ranges are the kinds of ranges, in the order of the page, with what they are called.
func ranges() []struct{ over, title, head string } {
	return []struct{ over, title, head string }{
		{"size", "By size of the message", "Size"},
		{"nodes", "By number of nodes", "Nodes"},
		{"clients", "By many clients of one file", "Clients"},
		{"streams", "By connections at once", "Connections"},
		{"offered", "By rate of datagrams", "Sent"},
	}
}

// placeText writes a place on a range.
func placeText(over string, at float64) string {
	switch over {
	case "size":
		return size(int64(at))
	case "offered":
		return human(at, "B/s")
	}
	return fmt.Sprintf("%g", at)
}

// sweepLabel names a curve for people.
func sweepLabel(s muster.Sweep) string {
	text := aboutMetric(s.Metric).Title
	if s.Size > 0 {
		text += ", " + size(s.Size)
	}
	switch {
	case s.Over == "nodes" && s.Ranks == 1:
		text += ", one process on each node"
	case s.Ranks > 1:
		text += fmt.Sprintf(", %d processes on each node", s.Ranks)
	}
	if s.Distance != "" {
		text += ", " + apart(s.Distance)
	}
	return text
}

func sweepTables(list []muster.Sweep) []sweepTable {
	var out []sweepTable
	for _, r := range ranges() {
		t := sweepTable{Title: r.title, Over: r.head}
		for _, s := range list {
			if s.Over != r.over {
				continue
			}
			for _, p := range s.Points {
				if len(t.Rows) < mostSweepRows {
					t.Rows = append(t.Rows, sweepRow{
						sweepLabel(s), placeText(s.Over, p.At), human(p.Median, s.Unit), human(p.Mean, s.Unit), between(p.Min, p.Max, s.Unit), whole(p.Samples),
					})
				}
			}
		}
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// sweepFigures are the metrics, for what is said of each.
func sweepFigures(list []muster.Sweep) []figure {
	var out []figure
	for _, s := range list {
		out = append(out, figure{figureKey: figureKey{Name: s.Metric}, about: aboutMetric(s.Metric), Unit: s.Unit, Less: s.Less})
	}
	slices.SortStableFunc(out, func(a, b figure) int { return cmp.Compare(a.group, b.group) })
	return out
}

// sweepCharts draw what has more than one point.
func sweepCharts(list []muster.Sweep) []picture {
	var out []picture
	draw := func(title, caption, unit, over string, name func(muster.Sweep) (string, bool)) {
		c := chart{picture: picture{Title: title, Caption: caption, W: half, H: 270}, Unit: unit, Right: 118}
		if over != "size" {
			c.Along = func(v float64) string { return placeText(over, v) }
		}
		for _, s := range list {
			text, ok := name(s)
			if !ok || s.Over != over || s.Unit != unit {
				continue
			}
			v := curve{Text: text, Class: next(c.Curves), Sign: len(c.Curves)}
			for _, p := range s.Points {
				v.Points = append(v.Points, point{p.At, p.Min, p.Median, p.Max})
			}
			c.Curves = append(c.Curves, v)
		}
		c.Text = spokenOver(c.Curves, unit, over)
		if p, ok := c.draw(); ok {
			out = append(out, p)
		}
	}
	bySize := func(what string) func(muster.Sweep) (string, bool) {
		return func(s muster.Sweep) (string, bool) {
			group, rest, _ := strings.Cut(s.Metric, ".")
			where, ends := strings.CutSuffix(rest, "."+what)
			switch {
			case group == "size" && rest == what:
				return cmp.Or(apart(s.Distance), "between nodes"), true
			case group == "inside" && ends:
				return map[string]string{"core": "in one core", "cache": "in one cache", "socket": "in one socket", "sockets": "between sockets"}[where], true
			}
			return "", false
		}
	}
	draw("Latency by size of the message", "Half of the way there and back.", "s", "size", bySize("latency"))
	draw("Bandwidth by size of the message", "Each way by itself, with several messages on their way at once.", "B/s", "size", bySize("bandwidth"))
	draw("Bandwidth by size, both ways", "Both ways at once, in sum.", "B/s", "size", bySize("both"))
	for _, n := range []int64{8, 2000000} {
		draw("Time of "+size(n)+" by number of nodes", "Ping-pong is of one pair at a time, rings of all processes at once.", "s", "nodes", func(s muster.Sweep) (string, bool) {
			what, ok := map[string]string{"scale.pingpong.latency": "ping-pong", "scale.natural.latency": "in order", "scale.random.latency": "random"}[s.Metric]
			if s.Ranks > 1 {
				what += fmt.Sprintf(", %d each", s.Ranks)
			}
			return what, ok && s.Size == n && s.Distance == ""
		})
	}
	draw("TCP by connections at once", "From one node to another, without MPI.", "B/s", "streams", func(s muster.Sweep) (string, bool) {
		return cmp.Or(apart(s.Distance), "between nodes"), true
	})
	draw("UDP by rate", "What came of what was sent. Where the line bends, datagrams are lost.", "B/s", "offered", func(s muster.Sweep) (string, bool) {
		return cmp.Or(apart(s.Distance), "between nodes"), true
	})
	return out
}

// spokenOver says in words what curves show, at both ends.
func spokenOver(list []curve, unit, over string) string {
	var words []string
	for _, c := range list {
		if len(c.Points) == 0 {
			continue
		}
		first, last := c.Points[0], c.Points[len(c.Points)-1]
		words = append(words, fmt.Sprintf("%s: %s at %s, %s at %s.", c.Text, human(first.Mid, unit), placeText(over, first.X), human(last.Mid, unit), placeText(over, last.X)))
	}
	return strings.Join(words, " ")
}
