package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// measureFlags are the flags of certificate run.
type measureFlags struct {
	quick, full, force, stop bool
	hpl                      bool // it is HPL that is ended or waited for
	attach, detach           bool
	nodes, files             string
	timeout                  time.Duration
}

func (a *app) certificateRun() *cobra.Command {
	var f measureFlags
	c := &cobra.Command{
		Use: "run CLUSTER", Short: "Measure a cluster and certify the results",
		Long: `Measures processors, memory and network of a cluster's compute nodes and signs the
results. --quick, the default, takes about a minute on a few nodes; --full also measures
file systems, disks and sockets, and takes about 15 minutes for narrower intervals.

The nodes must be idle: it is rejected while jobs are running, unless you accept with
--force that they are slowed down. Jobs submitted meanwhile wait until it is done.
Ctrl-C detaches; the measurement continues.`,
		Example: `  muster certificate run cfd
  muster certificate run cfd --full
  muster certificate run cfd --full --files memory
  muster certificate run cfd --nodes n[01-02]
  muster certificate run cfd --stop`,
		Args: exactly("CLUSTER"), ValidArgsFunction: a.completeClusters(1),
		RunE: func(c *cobra.Command, args []string) error { return a.runMeasure(c.Context(), args[0], &f) },
	}
	flags := c.Flags()
	flags.BoolVar(&f.quick, "quick", false, "few launches, about a minute (the default)")
	flags.BoolVar(&f.full, "full", false, "many launches, and file systems")
	flags.StringVar(&f.files, "files", "", "with --full: how much to write to shared files: 64GiB, or memory for more than the nodes' memory (default 256MiB)")
	flags.StringVar(&f.nodes, "nodes", "", "compute nodes to measure: n[01-04] (default: all)")
	flags.BoolVar(&f.force, "force", false, "measure even if jobs are running")
	flags.BoolVar(&f.attach, "attach", false, "wait for the measurement in progress")
	flags.BoolVar(&f.detach, "detach", false, "return immediately")
	flags.BoolVar(&f.stop, "stop", false, "stop the measurement in progress")
	duration.Var(flags, &f.timeout, "timeout", 0, "give up waiting after this long")
	c.MarkFlagsMutuallyExclusive("quick", "full")
	c.MarkFlagsMutuallyExclusive("attach", "detach", "stop")
	_ = c.RegisterFlagCompletionFunc("nodes", func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.workers(c, args[0], typed)
	})
	return c
}

func (a *app) runMeasure(ctx context.Context, ref string, f *measureFlags) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	r := wire.MeasureRequest{Files: f.files, Nodes: f.nodes, Force: f.force, Stop: f.stop}
	if f.full {
		r.Level = string(muster.ValidateFull)
	}
	var done wire.MeasureReply
	var c wire.Cluster
	if f.attach || f.stop {
		if c, err = k.Cluster(ctx, ref); err != nil {
			return err
		}
		if err := otherKind(c, f.hpl); err != nil {
			return err
		}
	}
	if f.attach {
		if c.Measurement == nil || !c.Measurement.Phase.Open() {
			return muster.Errorf(muster.EConflict, "cluster %s is not being measured", c.Name).Because(muster.ReasonNotBeingMeasured).WithHint("begin with 'muster certificate run %s'", c.Name)
		}
		done = wire.MeasureReply{Cluster: c.ID, Name: c.Name, Measurement: *c.Measurement}
	} else if done, err = k.Measure(ctx, ref, r); err != nil {
		return err
	}
	if f.stop || f.detach {
		return a.print(done, func(w io.Writer) { fmt.Fprintln(w, measurementWords(done)) })
	}
	w := &measureWatcher{app: a, client: k, reply: done, timeout: f.timeout}
	if err := w.run(ctx); err != nil {
		return err
	}
	return a.print(w.reply, func(out io.Writer) { fmt.Fprintln(out, measurementWords(w.reply)) })
}

// otherKind reports whether what runs is the other kind of measuring than the one that
// is meant: one command does not end what another began.
func otherKind(c wire.Cluster, hpl bool) error {
	m := c.Measurement
	if m == nil || !m.Phase.Open() || (m.What == muster.MeasuresHPL) == hpl {
		return nil
	}
	if hpl {
		return muster.Errorf(muster.EConflict, "HPL does not run on cluster %s: its speed is measured for certificates", c.Name).Because(muster.ReasonNotBeingMeasured).
			WithHint("that is 'muster certificate run %s --attach', or --stop", c.Name)
	}
	return muster.Errorf(muster.EConflict, "cluster %s is not measured for certificates: HPL runs on it", c.Name).Because(muster.ReasonNotBeingMeasured).
		WithHint("that is 'muster bench hpl %s --attach', or --stop", c.Name)
}

// measurementWords reports how a measurement stands.
func measurementWords(r wire.MeasureReply) string {
	m := r.Measurement
	switch m.Phase {
	case muster.MeasurementDone:
		text := fmt.Sprintf("cluster %s  %s: %s", clean(r.Name), m.Manifest, m.Verdict)
		if !m.Certified {
			text += " (a report: not certified)"
		}
		for _, low := range m.Low {
			text += "\n  " + clean(low.Text)
		}
		if m.SlowHost != "" {
			text += "\n  the host is slow: " + clean(m.SlowHost)
		}
		return text + fmt.Sprintf("\n  %s in %s; see it with 'muster certificate show %s'", launches(m), age(m.Ended.Sub(m.Wanted)), m.Manifest)
	case muster.MeasurementFailed:
		return fmt.Sprintf("cluster %s: not measured", clean(r.Name))
	}
	return fmt.Sprintf("cluster %s is being measured (%s); wait for it with 'muster certificate run %s --attach'", clean(r.Name), m.Level, clean(r.Name))
}

func launches(m muster.Measurement) string {
	text := plaintext.Count(m.Launches, "launch")
	if m.Launches != 1 {
		text = plaintext.Count(m.Launches, "launch")
	}
	if m.Failed > 0 {
		text += fmt.Sprintf(", %d of them failed,", m.Failed)
	}
	return text
}

// measureWatcher waits for the end of a measurement.
type measureWatcher struct {
	app     *app
	client  *client.Client
	reply   wire.MeasureReply
	timeout time.Duration
}

// measureLook is how often a measurement is looked at.
const measureLook = 500 * time.Millisecond

func (w *measureWatcher) run(ctx context.Context) error {
	live := newLiveLine(w.app, w.app.output == "")
	defer live.clear()
	waiting := ctx
	if w.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	for {
		c, err := w.client.Cluster(waiting, string(w.reply.Cluster))
		switch {
		case err == nil && (c.Measurement == nil || c.Measurement.ID != w.reply.Measurement.ID):
			return muster.Errorf(muster.EConflict, "another benchmark run of cluster %s has begun", c.Name).Because(muster.ReasonChangedMeanwhile).WithHint("see 'muster events %s'", c.ID)
		case err == nil && c.Status != muster.ClusterReady && c.Status != muster.ClusterValidating && c.Status != muster.ClusterBuilding:
			return muster.Errorf(muster.EConflict, "cluster %s is %s", c.Name, c.Status).Because(muster.ReasonWrongPhase).WithHint("see 'muster events %s'", c.ID)
		case err == nil:
			w.reply.Measurement = *c.Measurement
			if !c.Measurement.Phase.Open() {
				return failedMeasurement(w.reply)
			}
			live.set(progressOf(*c.Measurement))
		case muster.CodeOf(err) != muster.EUnavailable && waiting.Err() == nil:
			return err
		}
		select {
		case <-time.After(measureLook):
			continue
		case <-waiting.Done():
		}
		live.clear()
		if ctx.Err() == nil {
			return muster.Errorf(muster.ETimeout, "cluster %s is not measured after %s", w.reply.Name, w.timeout).Because(muster.ReasonNotDoneYet).
				WithHint("it goes on: muster certificate run %s --attach", w.reply.Name)
		}
		fmt.Fprintf(w.app.env.Err, "\ndetached: the measurement goes on\n  wait for it: muster certificate run %s --attach\n  end it:      muster certificate run %s --stop\n", w.reply.Name, w.reply.Name)
		return ctx.Err()
	}
}

// failedMeasurement is why there are no certificates; nil if there are.
func failedMeasurement(r wire.MeasureReply) error {
	m := r.Measurement
	if m.Phase != muster.MeasurementFailed {
		return nil
	}
	e := muster.Errorf(muster.EUnavailable, "cluster %s was not measured", r.Name).Because(muster.ReasonNotMeasured)
	if m.Reason != nil {
		e = muster.Errorf(m.Reason.Code, "cluster %s was not measured: %s", r.Name, m.Reason.Message)
		if m.Reason.Hint != "" {
			return e.WithHint("%s", m.Reason.Hint)
		}
	}
	return e.WithHint("see 'muster events %s'", r.Cluster)
}

// progressOf is a measurement on one line.
func progressOf(m muster.Measurement) string {
	text := "measuring"
	if m.Launches > 0 {
		text = fmt.Sprintf("measuring: %d of %d launches", m.Done, m.Launches)
	}
	if n := len(m.Suspects) + len(m.SuspectLinks); n > 0 {
		text += fmt.Sprintf(", %s again", plaintext.Count(n, "suspect"))
	}
	if left := time.Until(m.ETA); !m.ETA.IsZero() && left > 0 {
		text += ", done in about " + age(left+time.Second)
	}
	return text
}
