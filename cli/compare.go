package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster/internal/plaintext"
)

func (a *app) compare() *cobra.Command {
	var q wire.CompareQuery
	c := &cobra.Command{
		Use: "compare A B [C...]", Short: "Compare measured performance of clusters, machines or classes", ValidArgsFunction: a.completeMeasured(-1),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(c, "%s is missing", []string{"A", "B"}[len(args)])
			}
			return nil
		},
		Long: `Compares B, C, ... with A, metric by metric: the difference with its interval, and
whether it is better, worse, or indistinguishable from chance. Each argument is a
cluster, a machine or a class, of which the newest certificate you can see is used, or
the ID of a certificate. The tests are rank tests on launches, so no distribution is
assumed, and they are corrected for the number of metrics.

Only comparable measurements are compared: if processors, libraries or the benchmark run
program differ, it says so. If that difference is what you want to compare, name the
condition: --across processor,cores,threads,cache.

The result is about these machines at the time of measurement. To compare two hardware
classes, compare the classes: class:A class:B.`,
		Example: `  muster compare cfd wind
  muster compare local-01 local-02 local-03 --metric stream
  muster compare pc-2345678bcd pc-bcdfghjkmn -o json
  muster compare class:epyc class:xeon --across processor,cores,threads,cache`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			q.Of = args
			out, err := k.Compare(c.Context(), q)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) { writeComparison(w, out) })
		},
	}
	c.Flags().StringSliceVar(&q.Across, "across", nil, "conditions that may differ, because their effect is being compared: processor,cores")
	c.Flags().StringVar(&q.Metric, "metric", "", "only this metric, or all with this prefix before a dot: stream")
	_ = c.RegisterFlagCompletionFunc("across", cobra.FixedCompletions([]string{
		"provider", "processor", "sockets", "cores", "threads", "numa", "cache", "clock", "huge_pages", "virtualization", "hypervisor", "pinning", "blas", "mpi", "transport", "scratch", "tools", "nodes", "distances",
	}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("metric", cobra.NoFileCompletions)
	return c
}

func writeComparison(w io.Writer, c wire.Comparison) {
	t := newTable("", "WHAT", "MEASURED", "CERTIFIED", "NODES", "CLASS", "IMAGE")
	t.rows[0][0] = "NAME"
	for _, s := range c.Sides {
		nodes := ""
		if s.Nodes > 0 {
			nodes = fmt.Sprint(s.Nodes)
		}
		certified := "yes"
		if !s.Certified {
			certified = strings.TrimSuffix("no: "+strings.Join(s.Caveats, ", "), ": ")
		}
		t.row(s.Name, s.Kind, stamp(s.Made), certified, nodes, s.Class, clip(string(s.Image), 19))
	}
	t.write(w)
	for i, s := range c.Sides {
		if i > 0 {
			writeAgainst(w, c, i, s)
		}
	}
	counted := map[string]int{}
	for _, m := range c.Metrics {
		counted[m.Verdict]++
	}
	fmt.Fprintf(w, "\n%d better, %d worse, %d indistinguishable, %d not comparable.\n", counted[wire.Better], counted[wire.Worse], counted[wire.Indistinguishable], counted[wire.NotComparable])
	if c.Tests > 0 {
		fmt.Fprintf(w, "Ranks over %s; of those called better or worse %.0f %% are chance at most, on average, over %s (%s).\nIntervals hold with %.0f %% each. Less than %.0f %% is not told. SEES is the smallest difference that is seen in nine of ten cases.\n",
			map[bool]string{true: "launches", false: "machines"}[c.Unit == "launch"], 100*c.FalseFindings, plaintext.Count(c.Tests, "test"), c.Control, 100*c.Level, 100*c.Worth)
	}
}

// writeAgainst reports how one side stands against the first.
func writeAgainst(w io.Writer, c wire.Comparison, side int, s wire.ComparedSide) {
	first := c.Sides[0].Name
	fmt.Fprintf(w, "\n%s against %s\n", clean(s.Name), clean(first))
	var waivable []string
	never := false
	for _, d := range s.Differ {
		what := map[wire.Effect]string{wire.EffectStops: "not compared", wire.EffectWaived: "compared across", wire.EffectNoted: "compared all the same"}[d.Effect]
		if d.Concerns != "" {
			what += ", " + d.Concerns
		}
		fmt.Fprintf(w, "  %s: %s, and here %s (%s)\n", d.Condition, clip(clean(d.First), 60), clip(clean(d.Here), 60), what)
		if d.Effect == wire.EffectStops {
			never = never || d.Condition == "certified" || d.Condition == "probe"
			waivable = append(waivable, d.Condition)
		}
	}
	t := newTable("METRIC", strings.ToUpper(clean(first)), strings.ToUpper(clean(s.Name)), "DIFFERENCE", "INTERVAL", "SEES", "VERDICT")
	stopped := 0
	few := ""
	for _, m := range c.Metrics {
		if m.Side != side {
			continue
		}
		if m.Verdict == wire.NotComparable { // the figures are shown, and nothing follows from them
			stopped++
		} else if m.Reason != "" {
			few = m.Reason
		}
		ratio, interval, sees := "", "", ""
		if m.Ratio != nil {
			ratio = gain(*m.Ratio)
		}
		if m.Interval != nil {
			interval = gain(m.Interval.Low) + " to " + gain(m.Interval.High)
		}
		if m.Detectable != nil {
			sees = fmt.Sprintf("%.1f %%", 100**m.Detectable)
		}
		t.row(metricName(m.MetricKey), amount(m.First.Median, m.Unit), amount(m.Here.Median, m.Unit), ratio, interval, sees, m.Verdict)
	}
	if len(t.rows) > 1 {
		t.write(w)
	}
	if stopped > 0 {
		writeStopped(w, c, side)
	}
	if len(waivable) > 0 && !never {
		fmt.Fprintf(w, "  If that is what you compare, add --across %s\n", strings.Join(waivable, ","))
	}
	if few != "" {
		fmt.Fprintf(w, "  %s: name fewer with --metric, or measure more with 'muster certificate run --full'\n", clean(few))
	}
}

// writeStopped says why something is not compared, and what, unless that is all.
func writeStopped(w io.Writer, c wire.Comparison, side int) {
	var reasons []string
	by := map[string][]wire.MetricKey{}
	compared := 0
	for _, m := range c.Metrics {
		if m.Side == side {
			compared++
		}
		if m.Side == side && m.Verdict == wire.NotComparable {
			if by[m.Reason] == nil {
				reasons = append(reasons, m.Reason)
			}
			by[m.Reason] = append(by[m.Reason], m.MetricKey)
		}
	}
	for _, r := range reasons {
		what := ""
		if len(reasons) > 1 || len(by[r]) < compared {
			what = clean(metricNames(by[r])) + "\n    "
		}
		fmt.Fprintf(w, "  not comparable: %sbecause of %s\n", what, clip(clean(r), 200))
	}
}
