package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/muster-hpc/muster/wire"

	"github.com/muster-hpc/muster/internal/plaintext"
)

// amount is a figure for people, with the prefix that makes it short: 30.12 GB/s,
// 1.3 us. Shares are in percent.
func amount(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	by, unit := inUnits(v, unit)
	return digits4(v/by) + " " + unit
}

// amounts is a range of figures, in the unit of its end.
func amounts(low, high float64, unit string) string {
	if math.IsNaN(low+high) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		return "-"
	}
	by, unit := inUnits(high, unit)
	return digits4(low/by) + " to " + digits4(high/by) + " " + unit
}

// inUnits is what a figure is divided by, and the unit that it then has.
func inUnits(v float64, unit string) (float64, string) {
	if unit == "1" {
		return 0.01, "%"
	}
	for _, s := range []struct {
		from float64
		name string
	}{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}, {1e-12, "p"}} {
		if math.Abs(v) >= s.from*0.99995 {
			return s.from, s.name + unit
		}
	}
	return 1, unit
}

// digits4 is a number below a thousand in four digits.
func digits4(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 1e-3:
		return fmt.Sprintf("%.3g", v)
	case a < 9.9995:
		return fmt.Sprintf("%.3f", v)
	case a < 99.995:
		return fmt.Sprintf("%.2f", v)
	case a < 999.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// metricName is a metric with what tells it from others of its name.
func metricName(k wire.MetricKey) string {
	words := []string{k.Name}
	if k.Size > 0 {
		words = append(words, size(k.Size))
	}
	if k.Threads > 0 {
		words = append(words, plaintext.Count(k.Threads, "thread"))
	}
	if k.Distance != "" {
		words = append(words, "("+k.Distance+")")
	}
	return strings.Join(words, " ")
}

// metricNames names some of them, and counts the rest.
func metricNames(keys []wire.MetricKey) string {
	const most = 6
	var words []string
	for i, k := range keys {
		if i == most && len(keys) > most+1 {
			words = append(words, fmt.Sprintf("and %d more", len(keys)-most))
			break
		}
		words = append(words, metricName(k))
	}
	return strings.Join(words, ", ")
}

// gain is a ratio as what it is more or less: +3.1 %.
func gain(ratio float64) string { return fmt.Sprintf("%+.1f %%", 100*(ratio-1)) }
