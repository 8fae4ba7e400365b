package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

func factorWords(factors map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(factors)) {
		words = append(words, strings.ReplaceAll(name, "_", " ")+" "+cmp.Or(factors[name], "usual"))
	}
	return cleanText(strings.Join(words, ", "))
}

func (v *experimentContent) traffic(r muster.ExperimentResult) {
	for _, t := range r.Traffic {
		one := experimentTable{Title: cmp.Or(factorWords(t.Factors), "Programs"), Head: []string{"Program", "Slowdown", "MB/s a node", "Packets/s a node"},
			Text: "It takes five programs for a rank correlation."}
		for _, p := range t.Programs {
			one.Rows = append(one.Rows, []string{cleanText(p.Program), number(p.Slowdown), number(p.SentBytes / 1e6), number(p.SentPackets)})
		}
		if len(t.Programs) >= 5 {
			one.Text = "There is no rank correlation: all rank alike."
		}
		if t.Bytes != nil && t.Packets != nil {
			one.Text = fmt.Sprintf("Rank correlation of the slowdown: %s with MB/s, %s with packets/s. The intervals hold the true one with 95 %%.", ratioRow("", *t.Bytes).text, ratioRow("", *t.Packets).text)
		}
		v.Traffic = append(v.Traffic, one)
	}
}

func (v *experimentContent) hpl(r muster.ExperimentResult) {
	for _, h := range r.HPL {
		one := experimentTable{Head: []string{"N", "NB", "Grid", "Rate", "Interval"}}
		one.Title = fmt.Sprintf("%s, %s", count(h.Nodes, "node", "nodes"), count(h.Cores, "core", "cores"))
		if words := factorWords(h.Factors); words != "" {
			one.Title = words + ", " + one.Title
		}
		for _, s := range h.Sizes {
			interval := ""
			if s.Interval != nil {
				interval = between(s.Interval.Low, s.Interval.High, "flop/s")
			}
			one.Rows = append(one.Rows, []string{fmt.Sprint(s.N), fmt.Sprint(s.NB), fmt.Sprintf("%dx%d", s.P, s.Q), human(s.Rate, "flop/s"), interval})
		}
		half := fmt.Sprintf("below %d, the smallest order that was measured", h.Half.Below)
		if h.Half.N > 0 {
			half = fmt.Sprintf("%.0f, between %d and %d, which were measured", h.Half.N, h.Half.Above, h.Half.Below)
		}
		peak := "not known: clock and units of a processor are known when its machine was measured"
		if h.Peak != nil && h.OfPeak != nil {
			peak = cleanText(fmt.Sprintf("%s of %s: %s", percent(*h.OfPeak), human(h.Peak.Value, "flop/s"), h.Peak.Text))
		}
		model := "none: " + h.NoModel
		if m := h.Model; m != nil {
			model = fmt.Sprintf("T = %.3g N³ + %.3g N² + %.3g N seconds; %d orders lie %s from it", m.Cube, m.Square, m.Linear, m.Sizes, percent(m.Error))
		}
		one.Facts = []fact{{Name: "Rmax", Text: human(h.Rmax, "flop/s")}, {Name: "Nmax", Text: fmt.Sprint(h.Nmax)}, {Name: "N1/2", Text: half},
			{Name: "Per core", Text: human(h.PerCore, "flop/s")}, {Name: "Of peak", Text: peak}, {Name: "Model", Text: model}}
		v.HPL = append(v.HPL, one)
	}
	for _, of := range r.HPLNodes {
		one := experimentTable{Title: strings.TrimPrefix(factorWords(of.Factors)+", by nodes", ", "), Head: []string{"Nodes", "Rmax"}}
		for _, p := range of.Points {
			one.Rows = append(one.Rows, []string{fmt.Sprint(p.Nodes), human(p.Rmax, "flop/s")})
		}
		one.Text = of.NoModel
		if of.Serial != nil {
			one.Text = percent(*of.Serial) + " of the time of one node does not shrink with nodes."
		}
		v.HPL = append(v.HPL, one)
	}
}
