package cli

import (
	"context"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// hplFlags are the flags of bench hpl.
type hplFlags struct {
	time         string
	nodes        string
	force        bool
	attach, stop bool
	timeout      time.Duration
}

func (a *app) benchHPL() *cobra.Command {
	var f hplFlags
	c := &cobra.Command{
		Use: "hpl CLUSTER", Short: "Run HPL, and keep what it showed",
		Long: `Solves large systems of linear equations on all compute nodes, as lists of fast
computers do. First it tries which blocks, which grid and how many threads for each
rank suit the machines, then it launches the best setting several times. The size
follows from the memory and from --time.

HPL needs the nodes for itself: while jobs run it is refused, unless --force says
that they may be slowed down. It goes on when you stop waiting.`,
		Example: `  muster bench hpl cfd
  muster bench hpl cfd --time 1h
  muster bench hpl cfd --nodes n[01-02] --time 2m
  muster bench hpl cfd --stop`,
		Args: exactly("CLUSTER"), ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error { return a.runHPL(c.Context(), args[0], &f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.time, "time", "5m", "how long it may take in all")
	flags.StringVar(&f.nodes, "nodes", "", "set of the compute nodes: n[01-04] (default: all)")
	flags.BoolVar(&f.force, "force", false, "run it although jobs run")
	flags.BoolVar(&f.attach, "attach", false, "wait for the run that is under way")
	flags.BoolVar(&f.stop, "stop", false, "end the run that is under way")
	flags.DurationVar(&f.timeout, "timeout", 0, "give up waiting after this long")
	c.MarkFlagsMutuallyExclusive("attach", "stop")
	_ = c.RegisterFlagCompletionFunc("time", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("nodes", func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.workers(c, args[0], typed)
	})
	return c
}

func (a *app) runHPL(ctx context.Context, ref string, f *hplFlags) error {
	if f.stop || f.attach {
		return a.runMeasure(ctx, ref, &measureFlags{stop: f.stop, attach: f.attach, hpl: true, timeout: f.timeout})
	}
	if err := a.checkOutput(); err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	done, err := k.Measure(ctx, ref, wire.MeasureRequest{What: muster.MeasuresHPL, For: f.time, Nodes: f.nodes, Force: f.force})
	if err != nil {
		return err
	}
	w := &measureWatcher{app: a, client: k, reply: done, timeout: f.timeout}
	if err := w.run(ctx); err != nil {
		return err
	}
	list, err := k.HPLResults(ctx, string(done.Cluster), 0)
	if err != nil {
		return err
	}
	r, err := pickHPL(list, []string{string(w.reply.Measuring.Result)})
	if err != nil {
		return err
	}
	return a.print(r, func(out io.Writer) { writeHPL(out, r) })
}
