package page

import (
	"fmt"
	"math"
	"slices"
)

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

// several reports whether some curve has more than one point.
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
