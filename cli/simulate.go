package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/simulate"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/spf13/cobra"
)

func (a *app) simulate() *cobra.Command {
	g := simulate.Generated{Early: 0.15, Extended: 0.05}
	var o simulate.SWFOptions
	var days int
	var picture string
	var policies []string
	var promised float64
	c := &cobra.Command{
		Use: "simulate [FILE.swf]", Short: "Try a workload on a simulated site, by several policies", Args: atMost(1),
		Long: `Lets a workload run in simulated time on a site of equal machines, by strict order (fifo),
by EASY backfilling (easy) and by this system's own calendar (muster), and compares use,
waiting, fairness and promises. No server is needed.

The workload is a trace in the Standard Workload Format (also packed with gzip), or made
up with the rhythm of days and weeks; its seed is printed, and the same seed gives the same
figures.`,
		Example: `  muster simulate --machines 100 --requests 2000 --days 30
  muster simulate trace.swf.gz --cores-per-machine 64 --picture year.svg
  muster simulate trace.swf --machines 128 --policy easy,muster -o json`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			for _, p := range policies {
				if !slices.Contains(simulate.Policies(), p) {
					return usage(c, "there is no policy %q: write %s", p, strings.Join(simulate.Policies(), ", "))
				}
			}
			var w simulate.Workload
			if len(args) == 1 {
				f, err := os.Open(args[0])
				if err != nil {
					return muster.Errorf(muster.EInvalid, "the trace cannot be opened: %v", err).Because(muster.ReasonFileUnreadable).WithHint("name a file in the Standard Workload Format")
				}
				defer f.Close()
				if w, err = simulate.ReadSWF(f, o); err != nil {
					return err
				}
			} else {
				if o.Machines <= 0 {
					o.Machines = 100
				}
				if g.Requests < 1 || days < 1 || g.Requests > 10_000_000 || days > 36_600 || o.Machines > 1_000_000 {
					return usage(c, "--requests and --days must be 1 or more, and not beyond a century")
				}
				if g.Seed == 0 {
					g.Seed = uint64(time.Now().UnixNano()) % 1_000_000
				}
				g.Machines, g.Length, g.Users, g.Promised = o.Machines, time.Duration(days)*24*time.Hour, max(2, o.Machines/16), promised
				w = simulate.Generate(g)
			}
			results := []simulate.Result{}
			for i, p := range policies {
				if a.output == "" && a.env.terminal(a.env.Err) {
					fmt.Fprintf(a.env.Err, "\r\x1b[K  %d of %d: %s", i+1, len(policies), p)
				}
				r, err := simulate.Run(w, p)
				if err != nil {
					return err
				}
				results = append(results, r)
			}
			if a.output == "" && a.env.terminal(a.env.Err) {
				fmt.Fprint(a.env.Err, "\r\x1b[K")
			}
			if picture != "" {
				if err := os.WriteFile(picture, []byte(simulate.Picture(results)), 0o644); err != nil {
					return muster.Errorf(muster.EInvalid, "the picture cannot be written: %v", err).Because(muster.ReasonFileUnwritable).WithHint("name a file in a folder that you may write to")
				}
			}
			out := simulated{Machines: w.Machines, Jobs: len(w.Jobs), Seed: g.Seed, Notes: w.Notes, Results: results}
			return a.print(out, func(w io.Writer) { writeSimulated(w, out) })
		},
	}
	f := c.Flags()
	f.IntVar(&o.Machines, "machines", 0, "machines of the site (default: what the trace says, or 100)")
	f.IntVar(&o.CoresPerMachine, "cores-per-machine", 1, "of a trace: so many processors are one machine")
	f.IntVar(&g.Requests, "requests", 2000, "made up: number of requests")
	f.IntVar(&days, "days", 30, "made up: days in which they come")
	f.Uint64Var(&g.Seed, "seed", 0, "made up: seed (default: a new one, which is printed)")
	f.Float64Var(&g.Load, "load", 0.8, "made up: share of the machines' time that is asked for")
	f.Float64Var(&promised, "promised", 0.1, "made up: share of requests that ask for a time")
	f.IntVar(&g.Failures, "failures", 0, "made up: machines that break")
	f.IntVar(&g.Pauses, "pauses", 0, "made up: clusters that pause")
	f.StringSliceVar(&policies, "policy", simulate.Policies(), "policies to compare")
	f.StringVar(&picture, "picture", "", "write a picture of them as SVG")
	_ = c.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(simulate.Policies(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// simulated is what simulate prints for programs.
type simulated struct {
	Machines int               `json:"machines"`
	Jobs     int               `json:"jobs"`
	Seed     uint64            `json:"seed,omitempty"`
	Notes    []string          `json:"notes,omitempty"`
	Results  []simulate.Result `json:"results"`
}

func writeSimulated(w io.Writer, s simulated) {
	fmt.Fprintf(w, "%s on %s\n", plaintext.Count(s.Jobs, "job"), plaintext.Count(s.Machines, "machine"))
	for _, n := range s.Notes {
		fmt.Fprintf(w, "  note        %s\n", clean(n))
	}
	span := func(x simulate.Seconds) string { return age(time.Duration(float64(x) * float64(time.Second))) }
	t := newTable("POLICY", "USE", "WAIT MEDIAN", "95 %", "MAX", "SMALL", "LARGE", "SLOWDOWN", "FAIRNESS", "PROMISES", "MOVED", "LATE")
	for _, r := range s.Results {
		promises, moved, late := "-", "-", "-"
		if r.Policy == "muster" {
			promises, moved, late = fmt.Sprint(r.Promises), fmt.Sprint(r.Moved), fmt.Sprint(r.Late)
		}
		t.row(r.Policy, fmt.Sprintf("%.1f %%", 100*r.Use), span(r.WaitMedian), span(r.Wait95), span(r.WaitMost), span(r.WaitSmall), span(r.WaitLarge),
			fmt.Sprintf("%.1f", r.Slowdown), fmt.Sprintf("%.3f", r.Fairness), promises, moved, late)
	}
	t.write(w)
}
