package control

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/experiment"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Bounds of clusters of an experiment.
const (
	mostAttempts  = 3                // clusters of one visit that were of no use
	shortWalltime = 30 * time.Minute // a cluster without a client ends soon; it is extended as needed
)

// NextStep says what a client that runs an experiment does next, and has that on record before
// it answers: a launch with its run, a cluster with the key of its request. Who asks again after
// a crash gets the same step.
func (s *Service) NextStep(ctx context.Context, who muster.Actor, ref string, call wire.ExperimentCall) (wire.ExperimentStep, error) {
	var out wire.ExperimentStep
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		e, err := findExperiment(tx, ref)
		if err != nil {
			return err
		}
		if e.By != who.Name {
			return muster.Errorf(muster.EForbidden, "this is an experiment of %s", e.By).Because(muster.ReasonNotYours).WithHint("run the file yourself, under another name")
		}
		was := e
		was.Clusters = slices.Clone(e.Clusters)
		w := &stepper{s: s, tx: tx, who: who, e: e, call: call, now: s.Clock.Now().UTC()}
		if w.launches, err = tx.ExperimentLaunches(e.ID, -1, 0); err != nil {
			return err
		}
		out, err = w.step()
		if err != nil {
			return err
		}
		out.Planned, out.Done, out.State, out.Spent = experiment.Slots(e.Plan), len(w.launches), w.e.State, w.spent()
		if reflect.DeepEqual(w.e, was) {
			return nil
		}
		return tx.PutExperiment(w.e)
	})
	if err == nil && out.Job != nil {
		s.watchRun(ctx, out.Job.Run)
	}
	return out, err
}

// stepper takes one step of an experiment, in a transaction.
type stepper struct {
	s        *Service
	tx       *store.Tx
	who      muster.Actor
	e        muster.Experiment
	launches []muster.ExperimentLaunch
	call     wire.ExperimentCall
	now      time.Time
	living   *muster.ExperimentCluster // the cluster that is there, or was asked for
	cluster  *muster.Cluster           // nil: the request never came, or it is not on record any more
}

func (w *stepper) step() (wire.ExperimentStep, error) {
	if err := w.look(); err != nil {
		return wire.ExperimentStep{}, err
	}
	open, err := w.settleLaunch()
	if err != nil {
		return wire.ExperimentStep{}, err
	}
	if open != nil && w.e.State == muster.ExperimentOpen {
		return *open, nil
	}
	if w.e.State != muster.ExperimentOpen || w.call.Interrupted {
		return w.leave(), nil
	}
	for {
		next := experiment.Next(w.e.Plan, w.launches)
		if next.Done {
			return w.end(next.Failed, next.Text), nil
		}
		machines := float64(w.e.Plan.Blocks[next.Block].Machines)
		job := time.Duration(w.e.Plan.Job)
		if w.e.Plan.Cluster == "" {
			if step := w.clusterFor(next, machines); step != nil {
				return *step, nil
			}
		}
		step, again, err := w.launch(next, machines*job.Hours())
		if err != nil || !again {
			return step, err
		}
	}
}

// look finds the cluster that the experiment has now, and notes the end of one that is gone.
func (w *stepper) look() error {
	for i := range w.e.Clusters {
		c := &w.e.Clusters[i]
		if !c.Ended.IsZero() {
			continue
		}
		is, err := w.tx.Cluster(c.ID)
		switch {
		case muster.CodeOf(err) == muster.ENotFound && w.call.Refused != "":
			c.Ended, c.Problem = w.now, cleantext.Line(cleantext.Cut(w.call.Refused, 1000))
		case muster.CodeOf(err) == muster.ENotFound:
			w.living, w.cluster = c, nil
		case err != nil:
			return err
		case is.Phase == muster.ClusterDeleting || is.Phase == muster.ClusterDeleted:
			w.gone(c, is)
		default:
			w.living, w.cluster = c, &is
		}
	}
	return nil
}

// gone notes the end of a cluster.
func (w *stepper) gone(c *muster.ExperimentCluster, is muster.Cluster) {
	c.Ended = w.now
	if !is.Deleted.IsZero() {
		c.Ended = is.Deleted
	}
	c.Spent = hours(*c, is, c.Ended)
	w.e.Spent += c.Spent
	if c.Problem == "" && is.Ready.IsZero() {
		c.Problem = "it never became ready"
		if is.Reason != nil {
			c.Problem = cleantext.Line(is.Reason.Message)
		}
	}
}

// hours are the machine-hours of a cluster so far. One that waits in the queue has no machines.
func hours(c muster.ExperimentCluster, is muster.Cluster, until time.Time) float64 {
	if is.Phase == muster.ClusterQueued || is.Phase == muster.ClusterReserved {
		return 0
	}
	from := is.BuildStarted
	if from.IsZero() {
		if from = is.Ready; from.IsZero() {
			return 0
		}
	}
	return float64(c.Machines) * max(0, until.Sub(from).Hours())
}

// spent are the machine-hours up to now.
func (w *stepper) spent() float64 {
	sum := w.e.Spent
	if w.living != nil && w.cluster != nil && w.living.Ended.IsZero() {
		sum += hours(*w.living, *w.cluster, w.now)
	}
	return sum
}

// settleLaunch notes what became of the last launch. It returns the step of one that goes on.
func (w *stepper) settleLaunch() (*wire.ExperimentStep, error) {
	if len(w.launches) == 0 || w.launches[len(w.launches)-1].State != muster.ProgramRunOpen {
		return nil, nil
	}
	l := &w.launches[len(w.launches)-1]
	run, err := w.tx.ProgramRun(l.Run)
	switch {
	case muster.CodeOf(err) == muster.ENotFound:
		run = muster.ProgramRun{State: muster.ProgramRunFailed, Problem: "its run is not on record any more"}
	case err != nil:
		return nil, err
	}
	if run.State == muster.ProgramRunOpen {
		why := muster.DiscardRule("")
		is, err := w.tx.Cluster(l.Cluster)
		switch {
		case err == nil && is.Phase != muster.ClusterReady || muster.CodeOf(err) == muster.ENotFound:
			why, run.Problem = muster.DiscardClusterLost, "its cluster ended under it"
		case err != nil:
			return nil, err
		case w.call.Interrupted || w.e.State != muster.ExperimentOpen:
			why, run.Problem = muster.DiscardInterrupted, "the experiment was interrupted"
		default:
			step, err := w.again(*l, run, is)
			return &step, err
		}
		l.Discarded = append(l.Discarded, why)
		run.State, run.Ended = muster.ProgramRunFailed, w.now
		if err := w.tx.PutProgramRun(run); err != nil {
			return nil, err
		}
	}
	if run.Lost {
		l.Discarded = append(l.Discarded, muster.DiscardClusterLost)
	}
	l.State, l.Problem, l.Figure, l.Wall, l.Use, l.Ended = run.State, run.Problem, run.Figure, run.Wall, run.Use, run.Ended
	l.Ranks, l.Nodes, l.VM = run.Ranks, run.NodeCount, run.Conditions.VM
	l.Discarded = append(l.Discarded, experiment.Discards(w.e.Plan, *l)...)
	if w.e.Plan.Cluster != "" {
		w.e.Spent += float64(run.NodeCount) * (run.Wall + run.Build) / 3600
	}
	return nil, w.tx.PutExperimentLaunch(*l)
}

// again is the step of a launch that is under way, or was about to be.
func (w *stepper) again(l muster.ExperimentLaunch, run muster.ProgramRun, c muster.Cluster) (wire.ExperimentStep, error) {
	p := muster.Program{Name: run.Program, Project: run.Project, ProgramSpec: run.Spec}
	if found, err := findProgram(w.tx, run.Program, run.Project); err == nil {
		p.Builtin = found.Builtin
	}
	inputs, _, err := inputsOn(w.tx, c, p)
	job := jobView(p, run, inputs)
	return w.launchStep(l, job), err
}

func (w *stepper) launchStep(l muster.ExperimentLaunch, job wire.ProgramJob) wire.ExperimentStep {
	return wire.ExperimentStep{Do: wire.ExperimentLaunch, Job: &job, Launch: &l, Cluster: l.Cluster, ClusterName: job.Run.ClusterName, Text: cellName(w.e.Plan.Cells[l.Cell])}
}

// end ends the experiment, and gives its cluster back.
func (w *stepper) end(failed bool, text string) wire.ExperimentStep {
	w.e.State, w.e.Outcome, w.e.Ended = muster.ExperimentDone, text, w.now
	if failed {
		w.e.State = muster.ExperimentFailed
	}
	return w.leave()
}

// leave gives back the cluster that is there; without one, nothing is left to do.
func (w *stepper) leave() wire.ExperimentStep {
	if w.living == nil {
		return wire.ExperimentStep{Do: wire.ExperimentEnd, Text: w.e.Outcome}
	}
	if w.cluster == nil { // the request for it never came
		w.living.Ended = w.now
		return wire.ExperimentStep{Do: wire.ExperimentEnd, Text: w.e.Outcome}
	}
	return wire.ExperimentStep{Do: wire.ExperimentRelease, Cluster: w.living.ID, ClusterName: w.living.Name, Text: "giving back " + w.living.Name}
}

// clusterFor is what is to be done before a launch can run on a cluster of its block; nil: nothing.
func (w *stepper) clusterFor(next experiment.Step, machines float64) *wire.ExperimentStep {
	job := time.Duration(w.e.Plan.Job)
	release := func() *wire.ExperimentStep { step := w.leave(); return &step }
	switch {
	case w.living == nil:
		return w.ask(next, machines)
	case w.living.Visit != next.Visit && w.cluster == nil:
		w.living.Ended = w.now
		w.living = nil
		return w.ask(next, machines)
	case w.living.Visit != next.Visit:
		return release()
	case w.cluster == nil:
		step := w.create(*w.living)
		return &step
	}
	c := w.cluster
	switch c.Phase {
	case muster.ClusterReady:
	case muster.ClusterFailed:
		w.living.Problem = "it failed"
		if c.Reason != nil {
			w.living.Problem = cleantext.Line(c.Reason.Message)
		}
		return release()
	default:
		return &wire.ExperimentStep{Do: wire.ExperimentWait, Cluster: c.ID, ClusterName: c.Name, Text: fmt.Sprintf("cluster %s is %s", c.Name, c.Phase)}
	}
	if left := c.Expires.Sub(w.now); !c.Expires.IsZero() && left < job+time.Minute {
		if w.call.NotExtended {
			return release() // another one goes on in its place
		}
		return &wire.ExperimentStep{Do: wire.ExperimentExtend, Cluster: c.ID, ClusterName: c.Name, By: fmt.Sprintf("%dm", int(w.walltime(next)/time.Minute)+1), Text: "extending " + c.Name}
	}
	return nil
}

// walltime is for how long a cluster is asked for: as long as its visit takes, but not longer than
// it may be without a client.
func (w *stepper) walltime(next experiment.Step) time.Duration {
	job := time.Duration(w.e.Plan.Job)
	need := time.Duration(experiment.Remaining(w.e.Plan, next.Place))*job + 2*time.Minute
	return min(need, max(cmp.Or(time.Duration(w.e.Plan.Walltime), shortWalltime), 2*job))
}

// ask notes that a cluster is wanted for a visit, and asks for it.
func (w *stepper) ask(next experiment.Step, machines float64) *wire.ExperimentStep {
	n := 0
	last := ""
	for _, c := range w.e.Clusters {
		if c.Visit == next.Visit && c.Problem != "" {
			n, last = n+1, c.Problem
		}
	}
	if n >= mostAttempts || w.call.Refused != "" {
		step := w.end(true, "the cluster of block "+w.e.Plan.Blocks[next.Block].Name+" could not be had: "+last)
		return &step
	}
	if step := w.overBudget(machines * (time.Duration(w.e.Plan.Job) + bootTime).Hours()); step != nil {
		return step
	}
	number := len(w.e.Clusters) + 1
	key := fmt.Sprintf("experiment %s %d", w.e.ID, number)
	c := muster.ExperimentCluster{
		Visit: next.Visit, Block: next.Block, Key: key, ID: keyedID(w.who, key), Machines: int(machines), Asked: w.now,
		Name:     fmt.Sprintf("%s-%s-%d", w.e.Name[:min(len(w.e.Name), 20)], string(w.e.ID)[3:7], number),
		Walltime: muster.Duration(w.walltime(next)),
	}
	w.e.Clusters = append(w.e.Clusters, c)
	step := w.create(c)
	return &step
}

func (w *stepper) create(c muster.ExperimentCluster) wire.ExperimentStep {
	body, err := clusterRequest(w.e, c.Block, c.Name, time.Duration(c.Walltime))
	if err != nil {
		return w.end(true, err.Error())
	}
	return wire.ExperimentStep{Do: wire.ExperimentCreate, Cluster: c.ID, ClusterName: c.Name, Key: c.Key, Request: body, Text: "asking for cluster " + c.Name}
}

// overBudget ends the experiment if the budget does not hold so many machine-hours more.
func (w *stepper) overBudget(more float64) *wire.ExperimentStep {
	if b := w.e.Plan.Budget; b > 0 && w.spent()+more > b {
		step := w.end(false, fmt.Sprintf("the budget is spent: %.3g of %.3g machine-hours, and the next launch may take %.3g", w.spent(), b, more))
		return &step
	}
	return nil
}

// launch puts the next launch on record with its run. again: its cell cannot run, and another comes
// next.
func (w *stepper) launch(next experiment.Step, hours float64) (step wire.ExperimentStep, again bool, err error) {
	cell := w.e.Plan.Cells[next.Cell]
	on := w.e.Plan.Cluster
	if w.living != nil {
		on = w.living.ID
	}
	l := muster.ExperimentLaunch{Experiment: w.e.ID, N: len(w.launches), Slot: next.Slot, Visit: next.Visit, Cell: next.Cell, Cluster: on, Began: w.now, State: muster.ProgramRunOpen}
	if step := w.overBudget(hours); step != nil {
		return *step, false, nil
	}
	job, err := w.s.startRun(w.tx, w.who, string(on), runRequest(w.e, cell, w.call.User), w.e.ID)
	if bad := asError(err); bad != nil && hopeless(bad) {
		text, _ := muster.Explain(bad)
		l.State, l.Impossible, l.Ended, l.Problem = muster.ProgramRunFailed, true, w.now, cleantext.Line(cleantext.Cut(text, 1000))
		w.launches = append(w.launches, l)
		return step, true, w.tx.PutExperimentLaunch(l)
	}
	if err != nil {
		return step, false, err
	}
	l.Run = job.Run.ID
	w.launches = append(w.launches, l)
	return w.launchStep(l, job), false, w.tx.PutExperimentLaunch(l)
}

// hopeless reports whether an error says that a cell can never run. What more time or another
// cluster would help is not.
func hopeless(e *muster.Error) bool {
	if slices.ContainsFunc(e.Problems, func(p muster.Problem) bool { return p.Field == "timeout" }) {
		return false
	}
	switch e.Reason {
	case muster.ReasonHasProblems, muster.ReasonImageLacks, muster.ReasonNoSuchObject, muster.ReasonAmbiguous:
		return true
	}
	return false
}
