package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

func (a *app) programRun() *cobra.Command {
	var r wire.RunRequest
	var settings runSettings
	c := &cobra.Command{
		Use: "run CLUSTER NAME [-- ARGUMENTS...]", Short: "Run a program on a cluster", ValidArgsFunction: a.completeRun,
		Long: `Runs a program as a job of the cluster's scheduler, on nodes of its own, and keeps the
result. It waits in the queue like any job. Exits with 0 if the program did and its
check holds, and with 1 if not.

Ctrl-C and lost connections end the wait, not the job: 'muster program wait' goes on,
'muster program stop' ends it. --timeout counts from the start of the program.`,
		Example: `  muster program run cfd ep --class A
  muster program run cfd md --ranks 8 --nodes 2 --timeout 1h
  muster program run cfd hpl --stack clang-mpich-blis
  muster program run cfd md --ranks 4 --threads 2 --bind socket
  muster program run cfd md --ranks-per-node 1 --env OMPI_MCA_btl=tcp,self --env OMP_PLACES=cores
  muster program run cfd md -o json -- -nsteps 10000`,
		Args: func(c *cobra.Command, args []string) error {
			own := args
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				own = args[:dash]
			}
			switch {
			case len(own) < 2:
				return usage(c, "%s is missing", []string{"CLUSTER", "NAME"}[len(own)])
			case len(own) > 2:
				return usage(c, "%q is one argument too many: those of the program go after --", own[2])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) (err error) {
			r.Program, r.Args = args[1], args[2:]
			if err := positive(c, "ranks", "nodes", "ranks-per-node", "threads"); err != nil {
				return err
			}
			if r.Settings, err = settings.settings(); err != nil {
				return err
			}
			return a.runProgram(c.Context(), args[0], r)
		},
	}
	flags := c.Flags()
	flags.StringVar(&r.Class, "class", "", "size of the problem (built-in programs: S)")
	flags.StringVar(&r.Stack, "stack", "", "build and run with this compiler, MPI and BLAS (image hpc-stacks)")
	flags.IntVar(&r.Ranks, "ranks", 0, "MPI ranks (default: one for each core)")
	flags.IntVar(&r.Nodes, "nodes", 0, "nodes to use (default: as few as hold the ranks)")
	flags.IntVar(&r.PerNode, "ranks-per-node", 0, "ranks of each node (default: as many as it holds)")
	settings.addTo(c)
	flags.StringVar(&r.Timeout, "timeout", "10m", "end the program after this long")
	flags.StringVarP(&r.User, "user", "u", "", "run as this user of the cluster (administrators)")
	_ = c.RegisterFlagCompletionFunc("class", cobra.FixedCompletions([]string{"S", "W", "A", "B", "C", "D"}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"ranks", "nodes", "ranks-per-node", "stack", "timeout", "user"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

// completeRun completes a cluster, and then a program.
func (a *app) completeRun(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeClusters(1)(c, args, typed)
	}
	return a.completePrograms(1, true)(c, args, typed)
}

func (a *app) programWait() *cobra.Command {
	return &cobra.Command{
		Use: "wait RUN", Short: "Wait for a run that was left, and keep its result", Args: exactly("RUN"), ValidArgsFunction: a.completeOpenRuns,
		Long: `Waits for a run whose command was interrupted, and keeps its result. Exits as 'muster
program run' does.`,
		Example: "  muster program wait pr-2345678bcd",
		RunE:    func(c *cobra.Command, args []string) error { return a.goOnWithRun(c.Context(), args[0], false) },
	}
}

func (a *app) programStop() *cobra.Command {
	return &cobra.Command{
		Use: "stop RUN", Short: "End a run", Args: exactly("RUN"), ValidArgsFunction: a.completeOpenRuns,
		Long:    "Cancels the job of a run. The run is kept as failed.",
		Example: "  muster program stop pr-2345678bcd",
		RunE:    func(c *cobra.Command, args []string) error { return a.goOnWithRun(c.Context(), args[0], true) },
	}
}

func (a *app) completeOpenRuns(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completion(c, func(ctx context.Context, k *client.Client) []string {
		list, _ := k.ProgramRuns(ctx, wire.RunQuery{Page: wire.Page{Limit: 100}})
		var ids []string
		for _, r := range list.Runs {
			if r.State == muster.ProgramRunOpen {
				ids = append(ids, string(r.ID))
			}
		}
		return ids
	}, typed)
}

func (a *app) runProgram(ctx context.Context, cluster string, r wire.RunRequest) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	job, err := k.StartRun(ctx, cluster, r)
	if err != nil {
		return err
	}
	w := &runWatcher{app: a, client: k, job: job}
	defer w.close()
	if err := w.submit(ctx); err != nil {
		return err
	}
	return w.show(w.wait(ctx))
}

func (a *app) goOnWithRun(ctx context.Context, id string, stop bool) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	k, err := a.connect()
	if err != nil {
		return err
	}
	job, err := k.RunJob(ctx, id)
	if err != nil {
		return err
	}
	w := &runWatcher{app: a, client: k, job: job}
	defer w.close()
	if job.Run.State == muster.ProgramRunOpen {
		if stop {
			if _, err := w.script(ctx, job.Cancel); err != nil {
				return err
			}
		}
		if err := w.wait(ctx); err != nil {
			return w.show(err)
		}
	}
	if stop && w.job.Run.State == muster.ProgramRunFailed { // as was asked for
		return a.print(w.job.Run, func(out io.Writer) { writeRun(out, w.job.Run, !a.utf8()) })
	}
	return w.show(nil)
}

// runWatcher goes with one run until it has ended.
type runWatcher struct {
	app    *app
	client *client.Client
	job    wire.ProgramJob
	// quiet: somebody else says how it goes.
	quiet bool
	conn  *ssh.Client
}

func (w *runWatcher) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// mostLooked is how much a script may print: what is kept of an output, and some lines.
const mostLooked = 720 << 10

// scriptError is a script that ended with another status than 0.
type scriptError struct {
	status int
	said   string
}

func (e *scriptError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.said) }

// script runs a script of the job on the head, and returns what it printed.
func (w *runWatcher) script(ctx context.Context, text string) ([]byte, error) {
	if w.conn == nil {
		conn, err := w.app.dialNode(ctx, w.client, string(w.job.Run.Cluster), "", w.user())
		if err != nil {
			return nil, err
		}
		w.conn = conn
	}
	session, err := w.conn.NewSession()
	if err != nil {
		w.close()
		return nil, broken(err)
	}
	defer func() { _ = session.Close() }()
	out, errs := &keptOutput{most: mostLooked}, &keptOutput{most: 4 << 10}
	err = w.app.attach(ctx, w.conn, session, "exec bash -s", streams{in: strings.NewReader(text), out: out, err: errs})
	var status *StatusError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &status):
		return nil, &scriptError{status.Status, strings.TrimSpace(errs.String())}
	case err != nil:
		w.close()
		return nil, err
	}
	return out.Bytes(), nil
}

// user is as whom the job runs: people log in as themselves without saying so.
func (w *runWatcher) user() string { return w.job.Run.By }

// submitTries is how often a job is handed over again when the connection is lost.
const submitTries = 5

// submit hands the job over to the scheduler. What refuses it ends the run.
func (w *runWatcher) submit(ctx context.Context) error {
	var err error
	for try := range submitTries {
		if try > 0 {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		if _, err = w.script(ctx, w.job.Submit); ctx.Err() != nil {
			return w.detached(ctx)
		}
		if muster.CodeOf(err) != muster.EUnavailable { // submitted, or refused: again would be the same
			break
		}
	}
	if err == nil {
		if !w.quiet {
			fmt.Fprintf(w.app.env.Err, "run %s submitted\n", w.job.Run.ID)
		}
		return nil
	}
	said := err.Error()
	var refused *scriptError
	if errors.As(err, &refused) && refused.said != "" {
		said = refused.said
	}
	p, reported := w.client.ReportRun(ctx, w.job.Run.ID, wire.RunReport{Refused: said[:min(len(said), 4000)]})
	if reported != nil || refused == nil {
		return err
	}
	w.job.Run = p.Run
	if w.quiet {
		return nil
	}
	return w.show(nil)
}

func (w *runWatcher) detached(ctx context.Context) error {
	if w.quiet {
		return ctx.Err()
	}
	fmt.Fprintf(w.app.env.Err, "\ndetached: the run goes on\n  wait for it: muster program wait %s\n  end it:      muster program stop %[1]s\n", w.job.Run.ID)
	return ctx.Err()
}

// How often the job is looked at: soon at first, since many programs are short.
const (
	runLook     = 500 * time.Millisecond
	runLookMost = 3 * time.Second
)

// wait looks at the job until it has ended. Connections may be lost meanwhile.
func (w *runWatcher) wait(ctx context.Context) error {
	live := newLiveLine(w.app, w.app.output == "")
	defer live.clear()
	say := func(text string) {
		if !w.quiet {
			fmt.Fprintln(w.app.env.Err, text)
		}
	}
	every, last := runLook, ""
	for {
		looked, err := w.script(ctx, w.job.Look)
		var p wire.RunProgress
		if err == nil {
			p, err = w.client.ReportRun(ctx, w.job.Run.ID, wire.RunReport{Looked: looked})
		}
		switch {
		case ctx.Err() != nil:
			live.clear()
			return w.detached(ctx)
		case err == nil && p.Run.State != muster.ProgramRunOpen:
			w.job.Run = p.Run
			_, _ = w.script(ctx, w.job.Clear) // its files are of no more use; if they stay, the home has them
			return nil
		case err == nil:
			live.set(p.Text)
			if stage, _, _ := strings.Cut(p.Text, ", for "); stage != last && !live.on {
				say(clean(stage)) // each stage once, where no line can be written over
				last = stage
			}
		case muster.CodeOf(err) != muster.EUnavailable:
			return err
		default:
			live.set("the connection is lost, and tried again")
		}
		select {
		case <-time.After(every):
			every = min(every*5/4, runLookMost)
		case <-ctx.Done():
		}
	}
}

// show prints a run that has ended. One that failed is exit status 1.
func (w *runWatcher) show(err error) error {
	if err != nil {
		return err
	}
	run := w.job.Run
	if err := w.app.print(run, func(out io.Writer) { writeRun(out, run, !w.app.utf8()) }); err != nil {
		return err
	}
	if run.State != muster.ProgramRunPassed {
		return &StatusError{Status: exitFailed}
	}
	return nil
}

// keptOutput keeps the beginning of what is written.
type keptOutput struct {
	bytes.Buffer
	most int
}

func (k *keptOutput) Write(b []byte) (int, error) {
	k.Buffer.Write(b[:min(len(b), max(0, k.most-k.Len()))])
	return len(b), nil
}
