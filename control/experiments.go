package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/experiment"
	"github.com/muster-hpc/muster/control/program"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// bootTime is what a cluster takes besides its launches, where a bound is needed.
const bootTime = 10 * time.Minute

// StartExperiment plans an experiment and puts it on record, or finds the one of the same name
// and the same file, which is gone on with. With code EInvalid everything is said that is wrong.
func (s *Service) StartExperiment(ctx context.Context, who muster.Actor, r wire.ExperimentRequest) (wire.Experiment, error) {
	f, problems := experiment.Read([]byte(r.Text))
	if r.Cluster != "" {
		f.Cluster, f.Request = r.Cluster, nil
	}
	if len(problems) > 0 {
		return wire.Experiment{}, badExperiment(problems)
	}
	project := f.Project
	if problems := s.ownProject(ctx, who, &project); len(problems) > 0 {
		return wire.Experiment{}, badExperiment(problems)
	}
	e := muster.Experiment{ID: muster.NewExperimentID(), Name: f.Name, Project: project, By: who.Name, Created: s.Clock.Now().UTC(), Text: r.Text, State: muster.ExperimentOpen}
	old, found, err := s.sameExperiment(ctx, who, e)
	if err != nil || found {
		return old, err
	}
	if f.Seed == nil && r.Seed > 0 {
		f.Seed = &r.Seed
	}
	if e.Plan, problems = experiment.Make(f); len(problems) > 0 {
		return wire.Experiment{}, badExperiment(problems)
	}
	if err := s.settle(ctx, who, f, &e, r.User); err != nil {
		return wire.Experiment{}, err
	}
	if !r.DryRun {
		if err := s.WritesAllowed(); err != nil {
			return wire.Experiment{}, err
		}
		if err := s.Store.Update(ctx, who, func(tx *store.Tx) error { return tx.PutExperiment(e) }); err != nil {
			return wire.Experiment{}, err
		}
	}
	return wire.Experiment{Experiment: e, Result: experiment.Sum(e.Plan, nil)}, nil
}

func badExperiment(problems []muster.Problem) error {
	return muster.Errorf(muster.EInvalid, "the experiment has problems").Because(muster.ReasonHasProblems).Listing(spec.Distinct(problems))
}

// sameExperiment finds the experiment of this name. One of another file is a conflict.
func (s *Service) sameExperiment(ctx context.Context, who muster.Actor, e muster.Experiment) (out wire.Experiment, found bool, err error) {
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Experiments(store.ExperimentFilter{Project: e.Project, Name: e.Name})
		if err != nil || len(list) == 0 {
			return err
		}
		found = true
		if list[0].By != e.By {
			return muster.Errorf(muster.EConflict, "project %s has an experiment %s of %s", e.Project, e.Name, list[0].By).Because(muster.ReasonNameTaken).WithHint("choose another name")
		}
		if list[0].Text != e.Text {
			return muster.Errorf(muster.EConflict, "there is an experiment %s already, and its file was another one", e.Name).Because(muster.ReasonNameTaken).
				WithHint("choose another name: what was planned before the first launch stays as it was")
		}
		out, err = experimentView(tx, list[0])
		out.Resumed = true
		return err
	})
	return out, found, err
}

func experimentView(tx *store.Tx, e muster.Experiment) (wire.Experiment, error) {
	return askedView(tx, e, wire.ExperimentForecast{})
}

func askedView(tx *store.Tx, e muster.Experiment, ask wire.ExperimentForecast) (wire.Experiment, error) {
	launches, err := tx.ExperimentLaunches(e.ID, -1, 0)
	if err != nil {
		return wire.Experiment{}, err
	}
	out := wire.Experiment{Experiment: e, Result: experiment.Sum(e.Plan, launches)}
	peaks := peaks{tx: tx, launches: launches}
	experiment.HPL(e.Plan, &out.Result, experiment.Forecast{N: ask.N, Nodes: ask.Nodes}, peaks.of)
	return out, peaks.err
}

// settle fills in what depends on clusters and programs, and refuses what cannot run there.
func (s *Service) settle(ctx context.Context, who muster.Actor, f experiment.File, e *muster.Experiment, user string) error {
	p := &e.Plan
	specs := make([]muster.Spec, len(p.Blocks))
	var wrong []muster.Problem
	for i := range p.Blocks {
		if f.Cluster != "" {
			break
		}
		body, err := clusterRequest(*e, i, e.Name, time.Duration(max(p.Walltime, p.Timeout)))
		if err != nil {
			return err
		}
		out, err := s.CreateCluster(ctx, who, wire.CreateCall{Body: []byte(body), Format: "json", DryRun: true, DefaultUser: user})
		if list := inCluster(err, p.Blocks[i].Name, len(p.Blocks)); len(list) > 0 {
			wrong = append(wrong, list...)
			continue
		}
		if err != nil {
			return muster.Errorf(muster.CodeOf(err), "the cluster of block %q cannot be had: %v", p.Blocks[i].Name, err).Because(muster.ReasonOf(err)).Wrap(err)
		}
		specs[i], p.Blocks[i].Machines = out.Spec, out.Spec.TotalNodes()
	}
	if len(wrong) > 0 {
		return badExperiment(wrong)
	}
	return s.Store.View(ctx, who, func(tx *store.Tx) error {
		var problems []muster.Problem
		if f.Cluster != "" {
			c, err := tx.FindCluster(f.Cluster)
			if err != nil {
				return err
			}
			p.Cluster, p.Blocks[0].Machines = c.ID, c.Spec.Nodes
		}
		job := time.Duration(0)
		for _, cell := range p.Cells {
			prog, bad, err := s.checkCell(tx, who, *e, cell, specs[cell.Block], user)
			if err != nil {
				return err
			}
			for _, b := range bad {
				b.Message = "cell " + cellName(cell) + ": " + b.Message
				problems = append(problems, b)
			}
			job = max(job, program.JobTime(prog, time.Duration(p.Timeout)))
			if len(problems) > 20 {
				break
			}
		}
		if len(problems) > 0 {
			return badExperiment(problems)
		}
		p.Job = muster.Duration(job)
		hours := job.Hours()
		if p.Cluster == "" {
			hours += bootTime.Hours()
		}
		for _, b := range p.Blocks {
			if most := hours * float64(b.Machines); p.Budget > 0 && most > p.Budget {
				return badExperiment([]muster.Problem{{Field: "budget", Reason: muster.ReasonOutOfRange,
					Message: fmt.Sprintf("one launch on %s may take %.3g machine-hours, and the budget is %.3g", plaintext.Count(b.Machines, "machine"), most, p.Budget),
					Hint:    "raise the budget, or give a shorter timeout"}})
			}
		}
		p.AtMost = experiment.AtMost(*p, job.Seconds(), bootTime.Seconds())
		return nil
	})
}

// inCluster are the problems that the request for the cluster of a block has, as of the experiment's file, from whose fields
// the request was made.
func inCluster(err error, block string, blocks int) (list []muster.Problem) {
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EInvalid {
		return nil
	}
	for _, p := range e.Problems {
		p.Field, p.Place = "cluster."+p.Field, ""
		if blocks > 1 {
			p.Message = "block " + block + ": " + p.Message
		}
		list = append(list, p)
	}
	return list
}

func cellName(c muster.ExperimentCell) string {
	words := []string{c.Program}
	for _, f := range []string{"class", "n", "nb", "grid", "args", "ranks", "placement", "ranks_per_node", "threads", "binding", "network", "transport", "eager_limit", "mca", "env", "stack", "cluster", "image", "machine_class", "provider", "shape", "link_rate"} {
		if v := c.Factors[f]; v != "" {
			words = append(words, f+"="+v)
		}
	}
	return strings.Join(words, " ")
}

// checkCell reports what is wrong with a cell, as far as it can be known before there is a cluster.
func (s *Service) checkCell(tx *store.Tx, who muster.Actor, e muster.Experiment, cell muster.ExperimentCell, sp muster.Spec, user string) (p muster.Program, problems []muster.Problem, err error) {
	if p, err = findProgram(tx, cell.Program, e.Project); err != nil {
		if e := asError(err); e != nil {
			return p, []muster.Problem{e.In("matrix.program")}, nil
		}
		return p, nil, err
	}
	if e.Plan.Cluster != "" {
		_, _, _, err := s.preparedRun(tx, who, string(e.Plan.Cluster), runRequest(e, cell, user))
		switch bad := asError(err); {
		case bad == nil:
			return p, nil, err
		case len(bad.Problems) > 0:
			return p, bad.Problems, nil
		case bad.Code == muster.EConflict && bad.Reason == muster.ReasonImageLacks:
			return p, []muster.Problem{bad.In("matrix.program")}, nil
		}
		return p, nil, err
	}
	class := cell.Class
	if p.Builtin && class == "" {
		class = program.DefaultClass
	}
	problems = append(program.CheckFactors(p, class, cell.Stack, cell.Args), program.CheckSettings(cell.RunSettings)...)
	if bad := asError(s.sameImage(muster.Cluster{Name: "of this block", Spec: sp}, p)); bad != nil {
		problems = append(problems, bad.In("cluster.image"))
	}
	if bad := s.imageOlder(sp.Image, p); bad != nil {
		problems = append(problems, *bad)
	}
	for _, name := range p.Inputs {
		v, err := tx.FindVolume(name)
		if err != nil {
			return p, problems, err
		}
		there := false
		for _, use := range sp.Volumes {
			there = there || use.Volume == v.Name || use.Volume == string(v.ID)
		}
		if !there {
			problems = append(problems, muster.Problem{Field: "cluster.volumes", Reason: muster.ReasonVolumeUnfit, Message: "the program reads volume " + name, Hint: "write cluster: {volumes: [" + name + "]}"})
		}
	}
	return p, problems, nil
}

func runRequest(e muster.Experiment, c muster.ExperimentCell, user string) wire.RunRequest {
	return wire.RunRequest{Program: c.Program, Class: c.Class, Ranks: c.Ranks, PerNode: c.PerNode, Args: c.Args, Stack: c.Stack, Settings: c.RunSettings,
		Timeout: strconv.FormatFloat(e.Plan.Timeout.Seconds(), 'f', -1, 64) + "s", User: user}
}

// clusterRequest is the request for a cluster of a block, in JSON.
func clusterRequest(e muster.Experiment, block int, name string, walltime time.Duration) (string, error) {
	var tree map[string]any
	if err := json.Unmarshal([]byte(e.Plan.Blocks[block].Request), &tree); err != nil {
		return "", muster.Errorf(muster.ECorrupt, "the request of block %d cannot be read", block).Because(muster.ReasonStoreDamaged).WithHint("make the experiment anew, under another name").Wrap(err)
	}
	tree["name"], tree["project"], tree["walltime"] = name, e.Project, fmt.Sprintf("%dm", int(walltime/time.Minute)+1)
	if _, ok := tree["retain"]; !ok && tree["home"] == nil {
		tree["retain"] = "0" // nothing of it is of use afterwards
	}
	b, err := json.Marshal(tree)
	return string(b), err
}

// findExperiment finds one by its ID, its name, or PROJECT/NAME.
func findExperiment(tx *store.Tx, ref string) (muster.Experiment, error) {
	if id := muster.ExperimentID(ref); id.Valid() {
		return tx.Experiment(id)
	}
	project, name, ok := strings.Cut(ref, "/")
	if !ok {
		project, name = "", ref
	}
	list, err := tx.Experiments(store.ExperimentFilter{Project: project, Name: name})
	switch {
	case err != nil:
		return muster.Experiment{}, err
	case len(list) == 0 || name == "":
		return muster.Experiment{}, muster.Errorf(muster.ENotFound, "there is no experiment %.64q", ref).Because(muster.ReasonNoSuchObject).WithHint("`muster experiment list` lists them")
	case len(list) > 1:
		return muster.Experiment{}, muster.Errorf(muster.EConflict, "several projects have an experiment %.64q", ref).Because(muster.ReasonAmbiguous).
			WithHint("write PROJECT/NAME, such as %s/%s", list[0].Project, name)
	}
	return list[0], nil
}

// Experiment is one experiment with what it shows so far, and what follows for what is asked.
func (s *Service) Experiment(ctx context.Context, who muster.Actor, ref string, ask wire.ExperimentForecast) (out wire.Experiment, err error) {
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		e, err := findExperiment(tx, ref)
		if err != nil {
			return err
		}
		out, err = askedView(tx, e, ask)
		return err
	})
	return out, err
}

// Experiments lists those that the caller may see, the newest first.
func (s *Service) Experiments(ctx context.Context, who muster.Actor, page wire.Page) (wire.ExperimentList, error) {
	out := wire.ExperimentList{Experiments: []wire.ExperimentLine{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Experiments(store.ExperimentFilter{Limit: page.Size() + 1, After: page.After})
		if err != nil {
			return err
		}
		list, more := partOf(list, page)
		for _, e := range list {
			n, err := tx.CountExperimentLaunches(e.ID)
			if err != nil {
				return err
			}
			out.Experiments = append(out.Experiments, wire.ExperimentLine{ID: e.ID, Name: e.Name, Project: e.Project, By: e.By, Created: e.Created,
				State: e.State, Outcome: e.Outcome, Cells: len(e.Plan.Cells), Planned: experiment.Slots(e.Plan), Launches: n, Spent: e.Spent})
		}
		out.More, err = nextAfter(list, more, func(e muster.Experiment) (string, error) { return tx.ExperimentCursor(e.ID) })
		return err
	})
	return out, err
}

// ExperimentLaunches lists the launches of an experiment, in order.
func (s *Service) ExperimentLaunches(ctx context.Context, who muster.Actor, ref string, page wire.Page) (wire.ExperimentLaunchList, error) {
	out := wire.ExperimentLaunchList{Launches: []muster.ExperimentLaunch{}}
	after := -1
	if page.After != "" {
		n, err := strconv.Atoi(page.After)
		if err != nil || n < 0 {
			return out, notAPlace(page.After)
		}
		after = n
	}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		e, err := findExperiment(tx, ref)
		if err != nil {
			return err
		}
		list, err := tx.ExperimentLaunches(e.ID, after, page.Size()+1)
		if err != nil {
			return err
		}
		list, more := partOf(list, page)
		for i := range list {
			if list[i].Run == "" {
				continue
			}
			switch run, err := tx.ProgramRun(list[i].Run); muster.CodeOf(err) {
			case "":
				list[i].UseSeries = run.UseSeries
			case muster.ENotFound: // runs are kept for a shorter time
			default:
				return err
			}
		}
		out.Launches = append(out.Launches, list...)
		out.More, err = nextAfter(list, more, func(l muster.ExperimentLaunch) (string, error) { return strconv.Itoa(l.N), nil })
		return err
	})
	return out, err
}

// StopExperiment ends an experiment. Its clusters are given back, and what it showed stays.
func (s *Service) StopExperiment(ctx context.Context, who muster.Actor, ref string) (wire.Experiment, error) {
	var out wire.Experiment
	var clusters []muster.ClusterID
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		e, err := findExperiment(tx, ref)
		if err != nil {
			return err
		}
		if e.State == muster.ExperimentOpen {
			e.State, e.Outcome, e.Ended = muster.ExperimentStopped, "stopped by "+who.Name, s.Clock.Now().UTC()
		}
		for _, c := range e.Clusters {
			if c.Ended.IsZero() {
				clusters = append(clusters, c.ID)
			}
		}
		if err := tx.PutExperiment(e); err != nil {
			return err
		}
		out, err = experimentView(tx, e)
		return err
	})
	for _, id := range clusters {
		if _, gone := s.DeleteCluster(ctx, who, string(id)); err == nil && gone != nil && muster.CodeOf(gone) != muster.ENotFound {
			err = gone
		}
	}
	return out, err
}
