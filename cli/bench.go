package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) bench() *cobra.Command {
	c := &cobra.Command{
		Use: "bench", Short: "Run benchmarks of a cluster and show the results", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `Benchmarks of a whole cluster: HPL, the TOP500 benchmark. And what single cores reach
in mixes of arithmetic, which is part of each full certificate.`,
		Example: `  muster bench hpl cfd
  muster bench list cfd
  muster bench mixes`,
	}
	c.AddCommand(a.benchHPL(), a.benchList(), a.benchShow(), a.benchMixes())
	return c
}

func (a *app) benchList() *cobra.Command {
	return &cobra.Command{
		Use: "list CLUSTER", Short: "List HPL results, newest first", Args: exactly("CLUSTER"), ValidArgsFunction: a.completeClusters(1),
		Long: `Lists HPL results, newest first. The rate is the median over launches with one setting.
For a deleted cluster, give its ID.`,
		Example: `  muster bench list cfd
  muster bench list cfd -o json`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.HPLResults(c.Context(), args[0], 0)
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) { writeHPLList(w, list) })
		},
	}
}

func (a *app) benchShow() *cobra.Command {
	return &cobra.Command{
		Use: "show CLUSTER [RESULT]", Short: "Show an HPL result with all its launches", ValidArgsFunction: a.completeClusters(1),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "CLUSTER is missing")
			}
			return atMost(2)(c, args)
		},
		Long: `Shows one HPL result: the rate with its interval and extremes, settings, conditions and
every launch. Without RESULT it shows the newest.`,
		Example: `  muster bench show cfd
  muster bench show cfd hr-2345678bcd`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.HPLResults(c.Context(), args[0], 0)
			if err != nil {
				return err
			}
			r, err := pickHPL(list, args[1:])
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) { writeHPL(w, r); writeUse(w, r.Use, !a.utf8()) })
		},
	}
}

// pickHPL is the result of that ID, or the newest.
func pickHPL(list wire.HPLResults, id []string) (muster.HPLResult, error) {
	if len(list.Results) == 0 {
		return muster.HPLResult{}, muster.Errorf(muster.ENotFound, "HPL was not run on cluster %s", list.Name).Because(muster.ReasonNoSuchResult).
			WithHint("see what was measured: muster certificate --help")
	}
	for _, r := range list.Results {
		if len(id) == 0 || string(r.ID) == id[0] {
			return r, nil
		}
	}
	return muster.HPLResult{}, muster.Errorf(muster.ENotFound, "cluster %s has no result %q of HPL", list.Name, id[0]).Because(muster.ReasonNoSuchResult).
		WithHint("see 'muster bench list %s'", list.ID)
}

func writeHPLList(w io.Writer, list wire.HPLResults) {
	if len(list.Results) == 0 {
		fmt.Fprintf(w, "HPL was not run on %s.\n", list.Name)
		return
	}
	t := newTable("RESULT", "MADE", "NODES", "CORES", "RATE", "PER CORE", "OF PEAK", "N", "LAUNCHES", "NOTE")
	for _, r := range list.Results {
		t.row(string(r.ID), stamp(r.Made), fmt.Sprint(len(r.Nodes)), fmt.Sprint(r.Cores), flops(r.Rate.Median), flops(r.PerCore), percent(r.OfPeak),
			fmt.Sprint(r.Setting.N), fmt.Sprint(r.Rate.Launches), hplNote(list, r))
	}
	t.write(w)
}

// hplNote says what is special about a result.
func hplNote(list wire.HPLResults, r muster.HPLResult) string {
	var notes []string
	if list.Fastest != nil && list.Fastest.ID == r.ID && len(list.Results) > 1 {
		notes = append(notes, "fastest")
	}
	for _, v := range r.Caveats {
		notes = append(notes, v.Code)
	}
	return strings.Join(notes, ", ")
}

func writeHPL(w io.Writer, r muster.HPLResult) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", label, fmt.Sprintf(format, args...))
	}
	line("result", "%s of %s, %s", r.ID, cmp.Or(r.ClusterName, string(r.Cluster)), stamp(r.Made))
	line("rate", "%s: %s", flops(r.Rate.Median), launchesText(r.Rate.Launches))
	if v := r.Rate.Interval; v != nil {
		line("", "%s to %s with a chance of %.1f %%", flops(v.Low), flops(v.High), 100*v.Level)
	}
	line("", "from %s to %s", flops(r.Rate.Min), flops(r.Rate.Max))
	line("per core", "%s on %s of %s", flops(r.PerCore), plaintext.Count(r.Cores, "core"), plaintext.Count(len(r.Nodes), "node"))
	if p := r.Rate.Reference; p != nil && r.OfPeak != nil {
		line("of peak", "%s of %s: %s", percent(r.OfPeak), flops(p.Value), p.Text)
	}
	line("best", "%s in one launch", flops(r.Best.Rate))
	line("setting", "%s", settingText(r.Setting))
	for _, c := range r.Caveats {
		line("caveat", "%s: %s", c.Code, c.Text)
	}
	for _, f := range []struct{ label, text string }{
		{"processor", r.Conditions.Processor}, {"MPI", r.Conditions.MPI}, {"transport", r.Conditions.Transport}, {"pinning", r.Conditions.Pinning},
		{"kernel", r.Conditions.Kernel}, {"image", string(r.Conditions.Image)},
	} {
		if f.text != "" {
			line(f.label, "%s", f.text)
		}
	}
	if b := r.Conditions.BLAS; b != nil {
		line("BLAS", "%s %s", b.File, b.Config)
	}
	fmt.Fprintln(w)
	t := newTable("PART", "N", "NB", "GRID", "RANKS", "THREADS", "RATE", "SECONDS", "TOOK", "RESIDUAL", "PROBLEM")
	for _, run := range r.Runs {
		rate, seconds, residual := "", "", ""
		if run.Problem == "" {
			rate, seconds, residual = flops(run.Rate), fmt.Sprintf("%.2f", run.Seconds), fmt.Sprintf("%.4f", run.Residual)
		}
		took := time.Duration(run.Took * float64(time.Second)).Round(100 * time.Millisecond)
		t.row(run.Part, fmt.Sprint(run.N), fmt.Sprint(run.NB), fmt.Sprintf("%dx%d", run.P, run.Q), fmt.Sprint(run.P*run.Q), fmt.Sprint(run.Threads),
			rate, seconds, took.String(), residual, run.Problem)
	}
	t.write(w)
}

func settingText(s muster.HPLSetting) string {
	return fmt.Sprintf("N = %d, NB = %d, %d x %d ranks, %d a node, %s each", s.N, s.NB, s.P, s.Q, s.PerNode, plaintext.Count(s.Threads, "thread"))
}

// flops writes a rate with four digits and the prefix that suits it.
func flops(v float64) string {
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	i := 0
	for i < len(prefixes)-1 && math.Abs(v) >= 1000 {
		v /= 1000
		i++
	}
	return fmt.Sprintf("%.4g %sflop/s", v, prefixes[i])
}

func percent(share *float64) string {
	if share == nil {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100**share)
}

func launchesText(n int) string {
	if n == 1 {
		return "one launch, so that nobody knows how it varies"
	}
	return fmt.Sprintf("the median of %d launches", n)
}
