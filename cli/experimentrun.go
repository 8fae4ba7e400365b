package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/wire"
)

// experimentRunner does the steps of an experiment until none is left.
type experimentRunner struct {
	app    *app
	client *client.Client
	of     wire.Experiment
	call   wire.ExperimentCall
	watch  *runWatcher // the connection to the cluster that is used now
	live   *liveLine
	said   string
	// again is what goes on with it once it was interrupted; "": running the same file.
	again string
}

// How long a runner waits for a server that does not answer, and for giving back.
const (
	experimentPatience = 10 * time.Minute
	experimentLeave    = time.Minute
)

// run goes on until the experiment ends. Whatever happens before, its clusters are given back;
// it can be gone on with.
func (r *experimentRunner) run(ctx context.Context) error {
	r.live = newLiveLine(r.app, r.app.output == "")
	err := r.steps(ctx)
	r.live.clear()
	if err != nil {
		r.leave(ctx, err)
	}
	r.hangUp()
	return err
}

func (r *experimentRunner) hangUp() {
	if r.watch != nil {
		r.watch.close()
		r.watch = nil
	}
}

func (r *experimentRunner) steps(ctx context.Context) error {
	waited := time.Time{}
	for {
		step, err := r.next(ctx)
		if err != nil {
			return err
		}
		if step.Do != wire.ExperimentWait {
			waited = time.Time{}
		}
		switch step.Do {
		case wire.ExperimentEnd:
			return nil
		case wire.ExperimentLaunch:
			err = r.launch(ctx, step)
		case wire.ExperimentCreate:
			r.say(step, step.Text)
			err = r.create(ctx, step)
		case wire.ExperimentExtend:
			if _, extend := r.client.Extend(ctx, string(step.Cluster), wire.ExtendRequest{By: step.By}); extend != nil && muster.CodeOf(extend) != muster.EUnavailable {
				r.call.NotExtended = true
			}
		case wire.ExperimentRelease:
			r.say(step, step.Text)
			r.hangUp()
			err = r.release(ctx, step)
		case wire.ExperimentWait:
			r.say(step, step.Text)
			if waited.IsZero() {
				waited = time.Now()
			}
			err = pause(ctx, look(time.Since(waited)))
		default:
			err = muster.Errorf(muster.EConflict, "the server asks for a step %.40q that this program does not know", step.Do).Because(muster.ReasonOtherVersion).WithHint("use the version of the server: it is in the output of `muster server`")
		}
		if err != nil && (ctx.Err() != nil || muster.CodeOf(err) != muster.EUnavailable) {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// say shows what happens: on one line where there is a terminal, and else once.
func (r *experimentRunner) say(step wire.ExperimentStep, text string) {
	text = fmt.Sprintf("[%d/%d] %s", step.Done, step.Planned, text)
	r.live.set(text)
	if !r.live.on && text != r.said {
		r.said = text
		fmt.Fprintln(r.app.env.Err, clean(text))
	}
}

// next asks for the next step, until a server that restarts is back.
func (r *experimentRunner) next(ctx context.Context) (wire.ExperimentStep, error) {
	call := r.call
	for began := time.Now(); ; {
		step, err := r.client.NextStep(ctx, string(r.of.ID), call)
		if err == nil {
			r.call.Refused, r.call.NotExtended = "", false
			return step, nil
		}
		if ctx.Err() != nil || muster.CodeOf(err) != muster.EUnavailable || time.Since(began) > experimentPatience {
			return step, err
		}
		r.live.set("the server does not answer; asking again")
		if err := pause(ctx, look(time.Since(began))); err != nil {
			return step, err
		}
	}
}

// create asks for a cluster. Once it is asked for, the answer is waited for: a cluster that nobody
// knows of would be left.
func (r *experimentRunner) create(ctx context.Context, step wire.ExperimentStep) error {
	asking, done := context.WithTimeout(context.WithoutCancel(ctx), experimentLeave)
	defer done()
	_, err := r.client.CreateCluster(asking, client.Create{Body: []byte(step.Request), Format: "json", Key: step.Key, DefaultUser: r.app.person()})
	if err == nil || muster.CodeOf(err) == muster.EUnavailable || errors.Is(err, context.DeadlineExceeded) {
		return ctx.Err()
	}
	text, _ := muster.Explain(err)
	r.call.Refused = text[:min(len(text), 4000)]
	return ctx.Err()
}

// release gives a cluster back, and waits until its machines are on their way.
func (r *experimentRunner) release(ctx context.Context, step wire.ExperimentStep) error {
	_, err := r.client.DeleteCluster(ctx, string(step.Cluster))
	if muster.CodeOf(err) == muster.ENotFound {
		return nil
	}
	return err
}

// launch submits a job, unless it was, and waits for its end.
func (r *experimentRunner) launch(ctx context.Context, step wire.ExperimentStep) error {
	if r.watch != nil && r.watch.job.Run.Cluster != step.Job.Run.Cluster {
		r.hangUp()
	}
	if r.watch == nil {
		r.watch = &runWatcher{app: r.app, client: r.client, quiet: true}
	}
	r.watch.job = *step.Job
	r.live.set(fmt.Sprintf("[%d/%d] %s", step.Done, step.Planned, step.Text))
	err := r.watch.submit(ctx)
	if err == nil && r.watch.job.Run.State == muster.ProgramRunOpen {
		err = r.watch.wait(ctx)
	}
	if err != nil {
		return err
	}
	run := r.watch.job.Run
	result := figureText(run.Figure)
	if run.State != muster.ProgramRunPassed {
		result = "failed: " + run.Problem
	}
	r.live.clear()
	fmt.Fprintf(r.app.env.Err, "[%d/%d] %s: %s\n", step.Done, step.Planned, clean(step.Text), clean(result))
	return nil
}

// leave ends the launch that runs, and gives clusters back. The experiment stays open.
func (r *experimentRunner) leave(ctx context.Context, why error) {
	leaving, done := context.WithTimeout(context.WithoutCancel(ctx), experimentLeave)
	defer done()
	if w := r.watch; w != nil && w.job.Run.State == muster.ProgramRunOpen && w.job.Cancel != "" {
		_, _ = w.script(leaving, w.job.Cancel)
		_, _ = w.script(leaving, w.job.Clear)
	}
	r.call.Interrupted = true
	for range 10 {
		step, err := r.client.NextStep(leaving, string(r.of.ID), r.call)
		if err != nil {
			fmt.Fprintf(r.app.env.Err, "\nwhat the experiment has now stays: its clusters end by their walltime; or muster experiment stop %s\n", clean(r.of.Name))
			return
		}
		if step.Do != wire.ExperimentRelease {
			break
		}
		fmt.Fprintf(r.app.env.Err, "%s\n", clean(step.Text))
		if r.release(leaving, step) != nil {
			break
		}
	}
	if interrupted(ctx, why) || ctx.Err() != nil {
		fmt.Fprintf(r.app.env.Err, "\ninterrupted: %s again to go on, or end it: muster experiment stop %s\n", first(r.again, "run the same file"), clean(r.of.Name))
	}
}
