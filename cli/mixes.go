package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster"
)

// mixLevels are how mixes of arithmetic are compiled, from the slowest to the fastest.
func mixLevels() []string { return []string{"O0", "register", "O2", "O3", "fast"} }

// mixOf is the row of a mix of arithmetic, "1 double"; "" of other metrics.
func mixOf(metric string) string {
	words := strings.Split(metric, ".")
	if len(words) != 4 || words[0] != "arith" {
		return ""
	}
	return words[1] + " " + words[2]
}

// writeMixes writes the mixes of arithmetic on one core: a row for each mix, a column
// for each level, with its share of the theoretical peak.
func writeMixes(w io.Writer, metrics []muster.Metric) {
	var rows []string
	cells := map[string]map[string]string{}
	peaks := map[string]string{}
	for _, m := range metrics {
		row := mixOf(m.Name)
		if row == "" {
			continue
		}
		if cells[row] == nil {
			rows = append(rows, row)
			cells[row] = map[string]string{}
		}
		text := amount(m.Median, m.Unit)
		if r := m.Reference; r != nil && r.Source == muster.SourcePeak && r.Value > 0 {
			text += fmt.Sprintf(" (%.1f %%)", 100*m.Median/r.Value)
			peaks[row] = amount(r.Value, m.Unit)
		}
		cells[row][m.Name[strings.LastIndex(m.Name, ".")+1:]] = text
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprint(w, "\nMixes of arithmetic on one core, with their share of the peak\n")
	t := newTable(append([]string{"MIX", "NUMBERS"}, append(upper(mixLevels()), "PEAK")...)...)
	for _, row := range rows {
		mix, precision, _ := strings.Cut(row, " ")
		line := []string{clean(mix), clean(precision)}
		for _, l := range mixLevels() {
			line = append(line, cells[row][l])
		}
		t.row(append(line, peaks[row])...)
	}
	t.write(w)
}

func upper(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ToUpper(w)
	}
	return out
}
