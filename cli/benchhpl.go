package cli

import (
	"context"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/duration"
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
		Use: "hpl CLUSTER", Short: "Run HPL (the TOP500 benchmark)",
		Long: `Runs HPL (the TOP500 benchmark) on all compute nodes. It first tunes block size, process
grid and threads per rank, then launches the best setting several times. The problem
size follows from the memory and from --time.

The nodes must be idle: it is rejected while jobs are running, unless you accept with
--force that they are slowed down. Ctrl-C detaches; the run continues.`,
		Example: `  muster bench hpl cfd
  muster bench hpl cfd --time 1h
  muster bench hpl cfd --nodes n[01-02] --time 2m
  muster bench hpl cfd --stop`,
		Args: exactly("CLUSTER"), ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error { return a.runHPL(c.Context(), args[0], &f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.time, "time", "5m", "time limit of the whole run")
	flags.StringVar(&f.nodes, "nodes", "", "compute nodes to use: n[01-04] (default: all)")
	flags.BoolVar(&f.force, "force", false, "run even if jobs are running")
	flags.BoolVar(&f.attach, "attach", false, "wait for the run in progress")
	flags.BoolVar(&f.stop, "stop", false, "stop the run in progress")
	duration.Var(flags, &f.timeout, "timeout", 0, "give up waiting after this long")
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
	r, err := pickHPL(list, []string{string(w.reply.Measurement.Result)})
	if err != nil {
		return err
	}
	return a.print(r, func(out io.Writer) { writeHPL(out, r); writeUse(out, r.Use, !a.utf8()) })
}
