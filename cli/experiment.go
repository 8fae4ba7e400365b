package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/certificate/page"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) experiment() *cobra.Command {
	c := &cobra.Command{
		Use: "experiment", Aliases: []string{"experiments"}, Short: "Compare programs over ranks, placements and machines", Args: cobra.ArbitraryArgs, RunE: group,
		Long: `An experiment launches programs under factors that vary: ranks, placement, binding, MPI
settings, images, machines. Chance decides the order. It ends when the intervals are narrow
enough or the budget is spent, and compares what it found. Running the same file again
goes on where it was.`,
		Example: `  muster experiment run spread.yaml
  muster experiment show spread
  muster experiment page spread --to spread.html`,
	}
	c.AddCommand(a.experimentRun(), a.experimentShow(), a.experimentPage(), a.experimentList(), a.experimentStop())
	return c
}

func (a *app) experimentRun() *cobra.Command {
	var r wire.ExperimentRequest
	var yes bool
	c := &cobra.Command{
		Use: "run FILE", Short: "Run an experiment, or go on with it", Args: exactly("FILE"),
		Long: `Plans the experiment in a file (- is standard input), says how many machine-hours it may
take, and runs it: on a cluster that is there, or on clusters that it asks for and gives
back, also after failures and Ctrl-C. The same file goes on with an experiment that was
interrupted; launches that ended stay.

Exits with 0 when it is complete, and with 1 if it failed.`,
		Example: `  muster experiment run spread.yaml --dry-run
  muster experiment run spread.yaml --yes
  muster experiment run spread.yaml --cluster cfd -o csv > spread.csv`,
		RunE: func(c *cobra.Command, args []string) error { return a.runExperiment(c.Context(), args[0], r, yes) },
	}
	c.Flags().StringVar(&r.Cluster, "cluster", "", "run on this cluster, in place of what the file says")
	c.Flags().BoolVar(&r.DryRun, "dry-run", false, "show the plan and keep nothing")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask before it begins")
	c.Flags().StringVarP(&r.User, "user", "u", "", "run as this user of its clusters (administrators)")
	_ = c.RegisterFlagCompletionFunc("cluster", a.completeClusters(-1))
	_ = c.RegisterFlagCompletionFunc("user", cobra.NoFileCompletions)
	return c
}

// checkTable is checkOutput for commands that also write CSV.
func (a *app) checkTable() error {
	if a.output == "csv" {
		return nil
	}
	return a.checkOutput()
}

func (a *app) runExperiment(ctx context.Context, file string, r wire.ExperimentRequest, yes bool) error {
	if err := a.checkTable(); err != nil {
		return err
	}
	text, err := a.readUpTo(file, 64<<10, "an experiment")
	if err != nil {
		return err
	}
	r.Text = string(text)
	k, err := a.connect()
	if err != nil {
		return err
	}
	keep := r
	r.DryRun = true // what it may take is said before anything is kept
	e, err := k.StartExperiment(ctx, r)
	if err != nil {
		return err
	}
	if keep.DryRun {
		return a.printExperiment(e, func(w io.Writer) { writePlan(w, e) })
	}
	if !e.Resumed {
		writePlan(a.env.Err, e)
		if err := a.confirming(yes).word(fmt.Sprintf("experiment %s may take %s", e.Name, machineHours(e.Plan.AtMost)), "yes"); err != nil {
			return err
		}
		keep.Seed = e.Plan.Seed
		if e, err = k.StartExperiment(ctx, keep); err != nil {
			return err
		}
	} else if e.State == muster.ExperimentOpen {
		fmt.Fprintf(a.env.Err, "experiment %s goes on: %d of at most %s are on record\n", clean(e.Name), e.Result.Launches, plaintext.Count(e.Result.Planned, "launch"))
		if err := a.confirming(yes).word(fmt.Sprintf("experiment %s may take %s in all, and took %s", e.Name, machineHours(e.Plan.AtMost), machineHours(e.Spent)), "yes"); err != nil {
			return err
		}
	}
	run := &experimentRunner{app: a, client: k, of: e, call: wire.ExperimentCall{User: r.User}}
	err = run.run(ctx)
	if err != nil {
		return err
	}
	if e, err = k.Experiment(ctx, string(e.ID), wire.ExperimentForecast{}); err != nil {
		return err
	}
	if err := a.printExperiment(e, func(w io.Writer) { writeExperiment(w, e) }); err != nil {
		return err
	}
	if e.State != muster.ExperimentDone {
		return &StatusError{Status: exitFailed}
	}
	return nil
}

func machineHours(v float64) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	if v < 1 {
		text = strconv.FormatFloat(v, 'g', 2, 64)
	}
	return text + " machine-hours"
}

func (a *app) experimentShow() *cobra.Command {
	var launches bool
	var ask wire.ExperimentForecast
	c := &cobra.Command{
		Use: "show NAME", Short: "Show an experiment and what it found", Args: exactly("NAME"), ValidArgsFunction: a.completeExperiments,
		Long: `Shows the results so far: the median of each cell with its interval, how many times as fast
it is as the slowest of its group, speed-up and efficiency by ranks, how its cores spent their
time, and what its nodes sent. Of HPL it is Rmax, Nmax, N1/2 and the share of the peak, too,
and with --n and --nodes what is to be expected of another order or more nodes. Launches that were discarded are left out; -o json has both, and every launch with
how busy the processors were in each second. With -o csv it is one row for each cell, and with --launches for each launch.`,
		Example: `  muster experiment show spread
  muster experiment show linpack --n 40000 --nodes 32
  muster experiment show spread -o csv --launches > launches.csv`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkTable(); err != nil {
				return err
			}
			for name, v := range map[string]int{"n": ask.N, "nodes": ask.Nodes} {
				if v < 0 || v == 0 && c.Flags().Changed(name) {
					return usage(c, "--%s cannot be %d", name, v)
				}
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			e, err := k.Experiment(c.Context(), args[0], ask)
			if err != nil {
				return err
			}
			if !launches && a.output == "json" {
				out := shownExperiment{Experiment: e}
				if out.Launches, err = k.ExperimentLaunches(c.Context(), string(e.ID)); err != nil {
					return err
				}
				return a.print(out, func(io.Writer) {})
			}
			if !launches {
				return a.printExperiment(e, func(w io.Writer) { writeExperiment(w, e) })
			}
			list, err := k.ExperimentLaunches(c.Context(), string(e.ID))
			if err != nil {
				return err
			}
			if a.output == "csv" {
				return launchesCSV(a.env.Out, e, list)
			}
			return a.print(wire.ExperimentLaunchList{Launches: list}, func(w io.Writer) { writeLaunches(w, e, list) })
		},
	}
	c.Flags().BoolVar(&launches, "launches", false, "show each launch")
	c.Flags().IntVar(&ask.N, "n", 0, "extrapolate HPL to a matrix of this order")
	c.Flags().IntVar(&ask.Nodes, "nodes", 0, "extrapolate HPL to so many nodes")
	_ = c.RegisterFlagCompletionFunc("n", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("nodes", cobra.NoFileCompletions)
	return c
}

// shownExperiment is an experiment with its launches, each with how busy the processors were.
type shownExperiment struct {
	wire.Experiment
	Launches []muster.ExperimentLaunch `json:"launches"`
}

func (a *app) experimentPage() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use: "page NAME", Short: "Write an experiment as an HTML page", Args: exactly("NAME"), ValidArgsFunction: a.completeExperiments,
		Long: `Writes what an experiment found as one self-contained HTML file, with pictures, the plan
and every launch. It uses no scripts and loads nothing. Without --to it is written to
NAME.html; - is standard output.`,
		Example: "  muster experiment page spread --to spread.html",
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			e, err := k.Experiment(c.Context(), args[0], wire.ExperimentForecast{})
			if err != nil {
				return err
			}
			list, err := k.ExperimentLaunches(c.Context(), string(e.ID))
			if err != nil {
				return err
			}
			var html strings.Builder
			if err := page.WriteExperiment(&html, e.Experiment, e.Result, list); err != nil {
				return muster.Errorf(muster.EInternal, "the page cannot be written: %v", err).Wrap(err)
			}
			if to == "-" {
				_, err := io.WriteString(a.env.Out, html.String())
				return err
			}
			if to == "" {
				to = e.Name + ".html"
			}
			if err := os.WriteFile(to, []byte(html.String()), 0o644); err != nil {
				return muster.Errorf(muster.EInvalid, "cannot write %s", to).Because(muster.ReasonFileUnwritable).WithHint("give --to a file that can be written").Wrap(err)
			}
			return a.print(map[string]any{"file": to, "bytes": html.Len()}, func(w io.Writer) { fmt.Fprintf(w, "%s has the page of experiment %s\n", clean(to), clean(e.Name)) })
		},
	}
	c.Flags().StringVar(&to, "to", "", "write the page to this file (default NAME.html)")
	_ = c.MarkFlagFilename("to", "html")
	return c
}

func (a *app) experimentList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List experiments", Args: exactly(),
		Long:    "Lists the experiments of your projects, newest first.",
		Example: "  muster experiment list",
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			list, err := k.Experiments(c.Context())
			if err != nil {
				return err
			}
			return a.print(list, func(w io.Writer) {
				t := newTable("NAME", "PROJECT", "BY", "BEGUN", "STATE", "CELLS", "LAUNCHES", "OF", "MACHINE-HOURS")
				for _, e := range list.Experiments {
					t.row(e.Name, e.Project, e.By, stamp(e.Created), string(e.State), fmt.Sprint(e.Cells), fmt.Sprint(e.Launches), fmt.Sprint(e.Planned), fmt.Sprintf("%.2f", e.Spent))
				}
				t.write(w)
			})
		},
	}
}

func (a *app) experimentStop() *cobra.Command {
	return &cobra.Command{
		Use: "stop NAME", Short: "End an experiment and give its clusters back", Args: exactly("NAME"), ValidArgsFunction: a.completeExperiments,
		Long:    "Ends an experiment for good. What it found stays on record.",
		Example: "  muster experiment stop spread",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			e, err := k.StopExperiment(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(e, func(w io.Writer) { fmt.Fprintf(w, "experiment %s is %s\n", clean(e.Name), e.State) })
		},
	}
}

func (a *app) completeExperiments(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completion(c, func(ctx context.Context, k *client.Client) []string {
		list, _ := k.Experiments(ctx)
		var names []string
		for _, e := range list.Experiments {
			names = append(names, e.Name)
		}
		return names
	}, typed)
}

// printExperiment prints one in the format that is asked for; CSV is the table of its cells.
func (a *app) printExperiment(e wire.Experiment, people func(io.Writer)) error {
	if a.output == "csv" {
		return cellsCSV(a.env.Out, e)
	}
	return a.print(e, people)
}

// factorsOf are all factors of an experiment's cells, those that vary first.
func factorsOf(e wire.Experiment) []string {
	list := slices.Clone(e.Result.Varies)
	for _, c := range e.Plan.Cells {
		for name := range c.Factors {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	slices.Sort(list[len(e.Result.Varies):])
	return list
}

// sheetSafe keeps a spreadsheet from taking a text from outside for a formula.
func sheetSafe(s string) string {
	s = clean(s)
	if s != "" && strings.ContainsRune("=+-@\t", rune(s[0])) {
		if _, err := strconv.ParseFloat(s, 64); err != nil {
			return "'" + s
		}
	}
	return s
}

func cellsCSV(out io.Writer, e wire.Experiment) error {
	w := csv.NewWriter(out)
	factors := factorsOf(e)
	_ = w.Write(append(slices.Clone(factors), "figure", "unit", "median", "low", "high", "launches", "median_all", "launches_all", "failed", "relative", "relative_low", "relative_high",
		"speedup", "efficiency", "user", "system", "waiting", "sent_bytes_per_second_per_node", "sent_packets_per_second_per_node", "problem"))
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, r := range e.Result.Rows {
		row := []string{}
		for _, f := range factors {
			row = append(row, sheetSafe(r.Factors[f]))
		}
		row = append(row, sheetSafe(r.Name), sheetSafe(r.Unit))
		figure := func(f muster.ExperimentFigure) string {
			if f.N == 0 {
				return ""
			}
			return number(f.Median)
		}
		ends := func(v *muster.ExperimentInterval) []string {
			if v == nil {
				return []string{"", ""}
			}
			return []string{number(v.Low), number(v.High)}
		}
		row = append(append(row, figure(r.Kept)), ends(r.Kept.Interval)...)
		row = append(row, strconv.Itoa(r.Kept.N), figure(r.All), strconv.Itoa(r.All.N), strconv.Itoa(r.Failed))
		if r.Relative != nil {
			row = append(append(row, number(r.Relative.Value)), ends(r.Relative.Interval)...)
		} else {
			row = append(row, "", "", "")
		}
		if r.Speedup != nil {
			row = append(row, number(r.Speedup.Value), number(r.Efficiency))
		} else {
			row = append(row, "", "")
		}
		for _, v := range []*float64{r.User, r.System, r.Waiting, r.SentBytes, r.SentPackets} {
			if v == nil {
				row = append(row, "")
			} else {
				row = append(row, number(*v))
			}
		}
		problem := r.GivenUp
		if problem == "" {
			problem = r.Problem
		}
		_ = w.Write(append(row, sheetSafe(problem)))
	}
	w.Flush()
	return w.Error()
}

func launchesCSV(out io.Writer, e wire.Experiment, list []muster.ExperimentLaunch) error {
	w := csv.NewWriter(out)
	factors := factorsOf(e)
	_ = w.Write(append([]string{"n", "visit", "run", "began", "state", "discarded"}, append(slices.Clone(factors), "figure", "unit", "wall_seconds", "problem")...))
	for _, l := range list {
		row := []string{strconv.Itoa(l.N), strconv.Itoa(l.Visit), string(l.Run), l.Began.Format(time.RFC3339), string(l.State), rulesText(l.Discarded)}
		for _, f := range factors {
			row = append(row, sheetSafe(e.Plan.Cells[l.Cell].Factors[f]))
		}
		if l.Figure != nil {
			row = append(row, strconv.FormatFloat(l.Figure.Value, 'g', -1, 64), sheetSafe(l.Figure.Unit))
		} else {
			row = append(row, "", "")
		}
		_ = w.Write(append(row, strconv.FormatFloat(l.Wall, 'g', -1, 64), sheetSafe(l.Problem)))
	}
	w.Flush()
	return w.Error()
}

func rulesText(list []muster.DiscardRule) string {
	var words []string
	for _, r := range list {
		words = append(words, string(r))
	}
	return strings.Join(words, " ")
}
