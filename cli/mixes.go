package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) benchMixes() *cobra.Command {
	var q wire.MixQuery
	c := &cobra.Command{
		Use: "mixes", Short: "Show what one core reaches in mixes of arithmetic, by processor model", Args: exactly(),
		Long: `Shows what one core reaches in four mixes of arithmetic, for each processor model: with
64 bits (double) and 32 (float), at five levels of optimisation, with the share of the
theoretical peak. It is measured by 'muster certificate run --full'; the newest full
certificates that you can see are used, of up to eight machines of each class.

Operations are additions, subtractions, multiplications and divisions: mix 1 has 40, 23,
27 and 10 in 100, mix 2 has 38, 9, 43 and 9 in 99, mix 3 has 43, 3, 51 and 3, mix 4 has
43, 2, 55 and 0. Levels are no optimisation (O0), the same with register variables, O2,
O3, and -Ofast for the widest vectors of the processor (fast). Results are checked, and
the time of the empty loop is subtracted.`,
		Example: `  muster bench mixes
  muster bench mixes --class epyc-16
  muster bench mixes -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			table, err := k.Mixes(c.Context(), q)
			if err != nil {
				return err
			}
			return a.print(table, func(w io.Writer) { writeMixTable(w, table) })
		},
	}
	c.Flags().StringVar(&q.Class, "class", "", "only machines of this class")
	_ = c.RegisterFlagCompletionFunc("class", func(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return a.completion(c, a.classes, typed)
	})
	return c
}

func writeMixTable(w io.Writer, table wire.MixTable) {
	if len(table.Models) == 0 {
		fmt.Fprintln(w, "No mixes of arithmetic were measured. Measure a cluster: muster certificate run CLUSTER --full")
		return
	}
	for i, m := range table.Models {
		if i > 0 {
			fmt.Fprintln(w)
		}
		processor := clean(m.Processor)
		if processor == "" {
			processor = "processor not known"
		}
		fmt.Fprintf(w, "%s: %s, %d certified\n", processor, plaintext.Count(m.Machines, "machine"), m.Certified)
		if m.Double > 0 {
			fmt.Fprintf(w, "peak of a core: %s in double precision, %s in single: %s\n", amount(m.Double, "flop/s"), amount(m.Single, "flop/s"), clean(m.Text))
		} else {
			fmt.Fprintln(w, "peak of a core: not known")
		}
		var metrics []muster.Metric
		for _, f := range m.Mixes {
			o := muster.Metric{Name: fmt.Sprintf("arith.%d.%s.%s", f.Mix, f.Precision, f.Level), Unit: "flop/s", Median: f.Median}
			if peak := map[string]float64{"double": m.Double, "float": m.Single}[f.Precision]; peak > 0 {
				o.Reference = &muster.Reference{Value: peak, Source: muster.SourcePeak}
			}
			metrics = append(metrics, o)
		}
		mixRows(w, metrics)
	}
}

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
	for _, m := range metrics {
		if mixOf(m.Name) != "" {
			fmt.Fprint(w, "\nMixes of arithmetic on one core, with their share of the peak\n")
			mixRows(w, metrics)
			return
		}
	}
}

func mixRows(w io.Writer, metrics []muster.Metric) {
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
