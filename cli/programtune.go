package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/cli/tuning"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// tuneOptions are what a tuning was asked for.
type tuneOptions struct {
	cluster, program string
	args             []string
	class            string
	ranks            int
	budget           string
	vary             []string
	discard          []string
	timeout          string
	name             string
	user             string
	noModule         bool
}

func (a *app) programTune() *cobra.Command {
	var o tuneOptions
	c := &cobra.Command{
		Use: "tune [CLUSTER] NAME [-- ARGUMENTS...]", Short: "Find faster run-time settings for a program", ValidArgsFunction: a.completeTune,
		Long: `Searches settings that change nothing in the program: binding, transport, eager limit,
memory, one rank fewer on each node, collectives, buffers of sockets. Each is tried by
itself, then the winners together. New launches compare the best with the default, in
random order. Only if the whole interval says that it is faster, a module is written
into your home on the cluster; nothing changes until you load it.

Without CLUSTER it is your only one. What the cluster cannot vary is named. The same
command goes on after Ctrl-C. The stages are experiments: 'muster experiment list'.

Exits with 0 also if nothing better is found, and with 1 if the program fails.`,
		Example: `  muster program tune md
  muster program tune cfd md --ranks 16 --budget 1h
  muster program tune cfd md --budget 60 --vary binding,eager
  muster program tune md --cluster cfd --no-module -o json -- -nsteps 10000`,
		Args: func(c *cobra.Command, args []string) error {
			own := args
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				own = args[:dash]
			}
			switch {
			case len(own) == 0:
				return usage(c, "NAME is missing")
			case len(own) == 2 && o.cluster != "":
				return usage(c, "the cluster is given twice: %q and --cluster", own[0])
			case len(own) > 2:
				return usage(c, "%q is one argument too many: those of the program go after --", own[2])
			}
			o.program = own[len(own)-1]
			if len(own) == 2 {
				o.cluster = own[0]
			}
			o.args = args[len(own):]
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if err := positive(c, "ranks"); err != nil {
				return err
			}
			return a.tune(c.Context(), o)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.cluster, "cluster", "", "tune on this cluster")
	flags.StringVar(&o.class, "class", "", "size of the problem (built-in programs: S)")
	flags.IntVar(&o.ranks, "ranks", 0, "MPI ranks (default: one for each core)")
	flags.StringVar(&o.budget, "budget", "20m", "how long it may take, about; or how many launches")
	flags.StringSliceVar(&o.vary, "vary", nil, "vary these only (default: all)")
	flags.StringSliceVar(&o.discard, "discard", []string{string(muster.DiscardThrottled), string(muster.DiscardForeignLoad)}, "rules by which a launch does not count; none: all count")
	flags.StringVar(&o.timeout, "timeout", "10m", "end a launch after this long")
	flags.StringVar(&o.name, "name", "", "begin the names of its experiments so (default: tune-NAME-CLUSTER)")
	flags.BoolVar(&o.noModule, "no-module", false, "write no module")
	flags.StringVarP(&o.user, "user", "u", "", "run as this user of the cluster (administrators)")
	_ = c.RegisterFlagCompletionFunc("cluster", a.completeClusters(-1))
	_ = c.RegisterFlagCompletionFunc("class", cobra.FixedCompletions([]string{"S", "W", "A", "B", "C", "D"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("vary", cobra.FixedCompletions(tuning.Factors(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("discard", cobra.FixedCompletions([]string{string(muster.DiscardThrottled), string(muster.DiscardForeignLoad), "none"}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"ranks", "budget", "timeout", "name", "user"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

// completeTune completes a cluster or a program, and a program after a cluster.
func (a *app) completeTune(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	programs, directive := a.completePrograms(len(args), true)(c, args, typed)
	switch len(args) {
	case 0:
		clusters, _ := a.completeClusters(1)(c, args, typed)
		return append(clusters, programs...), directive
	case 1:
		return programs, directive
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// rules are those by which a launch does not count.
func (o tuneOptions) rules() []string {
	if slices.Equal(o.discard, []string{"none"}) {
		return nil
	}
	return o.discard
}

// budget is a number of launches, or a time.
type budget struct {
	launches int
	span     time.Duration
}

var tuneName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,21}$`)

// checked is everything that is wrong with the options, and the budget.
func (o tuneOptions) checked() (b budget, err error) {
	var problems []muster.Problem
	add := func(field string, why muster.Reason, hint, format string, args ...any) {
		problems = append(problems, muster.Problem{Field: field, Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	n, err := strconv.Atoi(o.budget)
	d, bad := spec.ParseDuration(o.budget)
	switch {
	case err == nil && (n < tuning.Least || n > 1000):
		add("budget", muster.ReasonOutOfRange, fmt.Sprintf("give %d to 1000 launches, or a time such as 20m", tuning.Least), "the budget cannot be %s", plaintext.Count(n, "launch"))
	case err == nil:
		b.launches = n
	case bad != nil || d < time.Minute || d > 7*24*time.Hour:
		add("budget", muster.ReasonBadValue, "write a time from 1m to 7d, such as 20m, or a number of launches", "%.40q is no budget", o.budget)
	default:
		b.span = d
	}
	for _, f := range o.vary {
		if !slices.Contains(tuning.Factors(), f) {
			add("vary", muster.ReasonBadValue, "there are: "+strings.Join(tuning.Factors(), ", "), "%.40q cannot be varied", f)
		}
	}
	for _, d := range o.rules() {
		if d != string(muster.DiscardThrottled) && d != string(muster.DiscardForeignLoad) {
			add("discard", muster.ReasonBadValue, "there are: throttled, foreign-load; or none", "%.40q is no rule", d)
		}
	}
	if d, err := spec.ParseDuration(o.timeout); err != nil || d < time.Second {
		add("timeout", muster.ReasonBadValue, "write a time from 1s to 7d", "%.40q is no such time", o.timeout)
	}
	if o.ranks < 0 {
		add("ranks", muster.ReasonOutOfRange, "give at least 1", "there cannot be %d ranks", o.ranks)
	}
	if o.name != "" && !tuneName.MatchString(o.name) {
		add("name", muster.ReasonBadName, "small letters, digits and hyphens, at most 22, a letter first", "%.40q cannot begin the names of experiments", o.name)
	}
	if len(problems) > 0 {
		return b, muster.Errorf(muster.EInvalid, "program %s cannot be tuned so", o.program).Because(muster.ReasonHasProblems).Listing(problems)
	}
	return b, nil
}

// tuned is what came out, for -o json.
type tuned struct {
	Program     string            `json:"program"`
	Cluster     muster.ClusterID  `json:"cluster"`
	ClusterName string            `json:"cluster_name"`
	Experiments []string          `json:"experiments"`
	Launches    int               `json:"launches"`
	Tried       []tuneTried       `json:"tried"`
	Left        []tuning.Left     `json:"left_out"`
	Best        *tuning.Setting   `json:"best,omitempty"`
	Verdict     tuning.Verdict    `json:"verdict"`
	Module      string            `json:"module,omitempty"`
	Use         map[string]string `json:"use,omitempty"`
}

// tuneTried is what one setting showed by itself in the search.
type tuneTried struct {
	tuning.Setting
	// Ratio is how many times as fast as the default it was, of medians. Zero: it showed nothing.
	Ratio   float64 `json:"ratio,omitempty"`
	Problem string  `json:"problem,omitempty"`
}

func (a *app) tune(ctx context.Context, o tuneOptions) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	b, err := o.checked()
	if err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	t := &tuner{app: a, client: k, options: o}
	out, err := t.run(ctx, b)
	if err != nil {
		return err
	}
	return a.print(out, func(w io.Writer) { writeTuned(w, out) })
}

func writeTuned(w io.Writer, t tuned) {
	table := newTable("SETTING", "TIMES AS FAST", "PROBLEM")
	for _, s := range t.Tried {
		ratio := ""
		if s.Ratio > 0 {
			ratio = fmt.Sprintf("%.3g", s.Ratio)
		}
		table.row(s.Name(), ratio, shortened(s.Problem, 80))
	}
	table.write(w)
	fmt.Fprintln(w)
	for _, l := range t.Left {
		fmt.Fprintf(w, "left out   %s: %s\n", clean(l.Factor), clean(l.Why))
	}
	if t.Best != nil {
		fmt.Fprintf(w, "best       %s\n", clean(t.Best.Name()))
	}
	fmt.Fprintf(w, "verdict    %s\n", clean(t.Verdict.Text))
	fmt.Fprintf(w, "launches   %d, in %s: %s\n", t.Launches, plaintext.Count(len(t.Experiments), "experiment"), clean(strings.Join(t.Experiments, ", ")))
	if t.Best != nil && t.Verdict.Better && t.Best.PerNode > 0 {
		fmt.Fprintf(w, "ranks      start %d on each node: no module can choose that\n", t.Best.PerNode)
	}
	if t.Module == "" {
		fmt.Fprintln(w, "module     none was written")
		return
	}
	fmt.Fprintf(w, "module     ~/%s.lua; to use it:\n\n  %s\n  %s\n", clean(t.Module), clean(t.Use["path"]), clean(t.Use["load"]))
}

// tuneSubject is how the launches of a tuning are made, on a cluster that is ready.
func tuneSubject(o tuneOptions, c wire.Cluster) tuning.Subject {
	return tuning.Subject{Project: c.Project, Cluster: string(c.ID), Program: o.program, Class: o.class, Ranks: o.ranks, Args: o.args, Timeout: o.timeout, Discard: o.rules()}
}
