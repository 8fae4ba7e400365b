package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// writeLinpack writes what experiments with HPL show.
func writeLinpack(w io.Writer, r muster.ExperimentResult) {
	for _, h := range r.HPL {
		fmt.Fprintln(w)
		fields(w, "HPL", strings.Join(append(factorWords(h.Factors), plaintext.Count(h.Nodes, "node"), plaintext.Count(h.Cores, "core")), ", "),
			"Rmax", gflops(h.Rmax, h.Interval), "Nmax", fmt.Sprint(h.Nmax), "N1/2", halfText(h.Half), "per core", gflops(h.PerCore, nil), "of peak", peakText(h),
			"model", modelText(h), "forecast", forecastText(h.At))
	}
	for _, of := range r.HPLNodes {
		var points []string
		for _, p := range of.Points {
			points = append(points, fmt.Sprintf("%d: %s", p.Nodes, gflops(p.Rmax, nil)))
		}
		serial := of.NoModel
		if serial == "" && of.Serial != nil {
			serial = percentText(*of.Serial) + " of the time of one node does not shrink with nodes"
		}
		fmt.Fprintln(w)
		fields(w, "HPL", strings.Join(append(factorWords(of.Factors), "by nodes"), ", "), "Rmax", strings.Join(points, ", "), "model", serial, "forecast", forecastText(of.At))
	}
}

func factorWords(factors map[string]string) (words []string) {
	for _, name := range slices.Sorted(maps.Keys(factors)) {
		if factors[name] != "" {
			words = append(words, name+"="+factors[name])
		}
	}
	return words
}

func gflops(v float64, in *muster.ExperimentInterval) string {
	text := fmt.Sprintf("%.4g Gflop/s", v/1e9)
	if in != nil {
		text += fmt.Sprintf(" (%.4g to %.4g)", in.Low/1e9, in.High/1e9)
	}
	return text
}

func halfText(h muster.ExperimentHPLHalf) string {
	if h.N == 0 {
		return fmt.Sprintf("below %d, the smallest that was measured", h.Below)
	}
	return fmt.Sprintf("%.0f, between %d and %d, which were measured", h.N, h.Above, h.Below)
}

func peakText(h muster.ExperimentHPL) string {
	if h.Peak == nil || h.OfPeak == nil {
		return "not known: clock and units of a processor are known when its machine was measured"
	}
	return fmt.Sprintf("%.1f %% of %s: %s", 100**h.OfPeak, gflops(h.Peak.Value, nil), h.Peak.Text)
}

func modelText(h muster.ExperimentHPL) string {
	if h.Model == nil {
		return "none: " + h.NoModel
	}
	m := h.Model
	return fmt.Sprintf("T = %.3g N^3 + %.3g N^2 + %.3g N seconds; %d orders lie %.1f %% from it", m.Cube, m.Square, m.Linear, m.Sizes, 100*m.Error)
}

func forecastText(at *muster.ExperimentHPLForecast) string {
	if at == nil {
		return ""
	}
	of := fmt.Sprintf("N %d", at.N)
	if at.Nodes > 0 {
		of = plaintext.Count(at.Nodes, "node")
	}
	if at.Refused != "" {
		return of + ": none, " + at.Refused
	}
	text := of + ": " + gflops(at.Rate, at.Rates)
	if at.Times != nil {
		text += fmt.Sprintf(" in %.4g s (%.4g to %.4g)", at.Seconds, at.Times.Low, at.Times.High)
	}
	return text + ", if the model holds there"
}

// writeTraffic writes whether programs that send much lose by being spread.
func writeTraffic(w io.Writer, r muster.ExperimentResult) {
	for _, t := range r.Traffic {
		fmt.Fprintf(w, "\nSpread over nodes%s:\n", strings.TrimSuffix(" with "+strings.Join(factorWords(t.Factors), ", "), " with "))
		table := newTable("PROGRAM", "SLOWDOWN", "MB/S A NODE", "PACKETS/S A NODE")
		for _, p := range t.Programs {
			table.row(p.Program, fmt.Sprintf("%.3g", p.Slowdown), fmt.Sprintf("%.3g", p.SentBytes/1e6), fmt.Sprintf("%.4g", p.SentPackets))
		}
		table.write(w)
		switch {
		case len(t.Programs) < 5:
			fmt.Fprintln(w, "It takes five programs for a rank correlation.")
		case t.Bytes == nil || t.Packets == nil:
			fmt.Fprintln(w, "There is no rank correlation: all rank alike.")
		default:
			fmt.Fprintf(w, "rank correlation of the slowdown: %s with MB/s, %s with packets/s\n", ratioText(t.Bytes), ratioText(t.Packets))
		}
	}
}
