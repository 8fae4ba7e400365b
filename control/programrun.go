package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/program"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Bounds of how long a program may run, and what is usual.
const (
	runLeast = time.Second
	runUsual = 10 * time.Minute
	runMost  = 7 * 24 * time.Hour
)

// StartRun puts a run of a program on record, and says how its job is submitted. The caller
// does that, as themselves: Muster runs nobody's programs.
func (s *Service) StartRun(ctx context.Context, who muster.Actor, ref string, r wire.RunRequest) (wire.ProgramJob, error) {
	var out wire.ProgramJob
	err := s.Store.Update(ctx, who, func(tx *store.Tx) (err error) {
		out, err = s.startRun(tx, who, ref, r, "")
		return err
	})
	if err == nil {
		s.watchRun(ctx, out.Run)
	}
	return out, err
}

// startRun is StartRun in a transaction, for an experiment or for none.
func (s *Service) startRun(tx *store.Tx, who muster.Actor, ref string, r wire.RunRequest, of muster.ExperimentID) (out wire.ProgramJob, err error) {
	p, run, inputs, err := s.preparedRun(tx, who, ref, r)
	if err != nil {
		return out, err
	}
	run.Experiment = of
	if err := tx.PutProgramRun(run); err != nil {
		return out, err
	}
	return jobView(p, run, inputs), nil
}

// preparedRun is a run as it would be, or everything that is wrong with it.
func (s *Service) preparedRun(tx *store.Tx, who muster.Actor, ref string, r wire.RunRequest) (p muster.Program, run muster.ProgramRun, inputs map[string]string, err error) {
	c, _, err := s.reach(tx, ref, "")
	if err != nil {
		return p, run, nil, err
	}
	login, err := s.loginName(who, c, r.User)
	if err != nil {
		return p, run, nil, err
	}
	if login == "root" {
		login = who.Name
	}
	if c.Spec.Scheduler != muster.SchedulerSlurm {
		return p, run, nil, muster.Errorf(muster.EConflict, "cluster %s has no scheduler, through which programs run", c.Name).Because(muster.ReasonImageLacks).WithHint("create one with an image that has Slurm, such as hpc")
	}
	if p, err = findProgram(tx, r.Program, c.Project); err != nil {
		return p, run, nil, err
	}
	if err := s.sameImage(c, p); err != nil {
		return p, run, nil, err
	}
	run, problems, err := s.planRun(tx, c, p, r)
	if err != nil {
		return p, run, nil, err
	}
	inputs, more, err := inputsOn(tx, c, p)
	if err != nil {
		return p, run, nil, err
	}
	if problems = append(problems, more...); len(problems) > 0 {
		return p, run, nil, muster.Errorf(muster.EInvalid, "program %s cannot run so", p.Name).Because(muster.ReasonHasProblems).Listing(spec.Distinct(problems))
	}
	run.By = login
	return p, run, inputs, nil
}

func jobView(p muster.Program, run muster.ProgramRun, inputs map[string]string) wire.ProgramJob {
	job := program.JobOf(p, run, inputs)
	return wire.ProgramJob{Run: run, Submit: job.Submit, Look: job.Look, Cancel: job.Cancel, Clear: job.Clear}
}

// sameImage reports whether a cluster runs the image of a program: any of its contents where
// the program names the image alone, and that very one where it names one.
func (s *Service) sameImage(c muster.Cluster, p muster.Program) error {
	if p.Builtin || c.Spec.Image == p.Image {
		return nil
	}
	if v, ok, err := muster.ParseImageVersion(c.Spec.Image); err == nil && ok && v.Name == p.Image {
		return nil
	}
	if img, err := s.Config.Images.Resolve(p.Image); err == nil && s.runs(c, img.ID) {
		return nil
	}
	return muster.Errorf(muster.EConflict, "cluster %s runs image %s, and program %s needs %s", c.Name, c.Spec.Image, p.Name, p.Image).Because(muster.ReasonImageLacks).
		WithHint("create a cluster with it: muster create NAME --image %s", p.Image)
}

// imageOlder reports that a content of an image is from before a built-in program: that shows only
// on a cluster otherwise, when the program is to run. Nil: it has it, or nobody can say.
func (s *Service) imageOlder(ref string, p muster.Program) *muster.Problem {
	file := program.FileOf(p)
	if file == "" {
		return nil
	}
	img, err := s.Config.Images.Resolve(ref)
	if err != nil {
		return nil // which the request says
	}
	there, known := s.Config.Images.Contains(img.ID, strings.TrimPrefix(file, "/"))
	if there || !known {
		return nil
	}
	hint := "an administrator builds it again: muster image build " + img.Name
	if newest, err := s.Config.Images.Resolve(img.Name); err == nil && newest.ID != img.ID {
		hint = fmt.Sprintf("use the newest content, %s, or build it again: muster image build %s", versionRef(newest), img.Name)
	}
	return &muster.Problem{Field: "cluster.image", Reason: muster.ReasonImageLacks,
		Message: fmt.Sprintf("image %s, built on %s, has no program %s: it has no %s", versionRef(img), img.Created.UTC().Format(time.DateOnly), p.Name, file), Hint: hint}
}

// runs reports whether a cluster runs a content, with more packages or without. One that has
// no content yet gets what its request means now.
func (s *Service) runs(c muster.Cluster, id muster.ImageID) bool {
	ref := string(c.Image)
	if ref == "" {
		ref = c.Spec.Image
	}
	img, err := s.Config.Images.Resolve(ref)
	return err == nil && (img.ID == id || img.Base == id)
}

// planRun says how a program would run on a cluster, and everything that is wrong with that.
func (s *Service) planRun(tx *store.Tx, c muster.Cluster, p muster.Program, r wire.RunRequest) (muster.ProgramRun, []muster.Problem, error) {
	class := r.Class
	if p.Builtin {
		class = cmp.Or(class, program.DefaultClass)
		p.Image = c.Spec.Image // it is of that image, and so is its version
	}
	problems := append(program.CheckFactors(p, class, r.Stack, r.Args), program.CheckSettings(r.Settings)...)
	timeout := runUsual
	if r.Timeout != "" {
		d, err := spec.ParseDuration(r.Timeout)
		if e := asError(err); e != nil {
			problems = append(problems, e.In("timeout"))
		} else if d < runLeast || d > runMost {
			problems = append(problems, muster.Problem{Field: "timeout", Reason: muster.ReasonOutOfRange, Message: "a program cannot run for " + r.Timeout, Hint: "write a time from 1s to 7d"})
		}
		timeout = d
	}
	// The scheduler would let a job wait for ever that cannot end before its cluster.
	if left := c.Expires.Sub(s.Clock.Now()); timeout <= runMost && !c.Expires.IsZero() && program.JobTime(p, timeout) > left {
		problems = append(problems, muster.Problem{Field: "timeout", Reason: muster.ReasonOutOfRange, Message: fmt.Sprintf("the job may take %s, and cluster %s ends in %s",
			plaintext.Span(program.JobTime(p, timeout)), c.Name, plaintext.Span(max(0, left))), Hint: "give a shorter timeout, or extend the cluster: muster extend " + c.Name})
	}
	nodes, err := tx.Nodes(c.ID)
	if err != nil {
		return muster.ProgramRun{}, nil, err
	}
	var cores []int
	var vm *muster.VMCondition
	for _, n := range nodes {
		if n.Role != muster.RoleCompute || n.Phase != muster.NodeReady || n.Machine == "" {
			continue
		}
		m, err := tx.Machine(n.Machine)
		if err != nil {
			return muster.ProgramRun{}, nil, err
		}
		cores = append(cores, m.Facts.Shaped(c.Spec.Shape).Cores)
		vm = vm.Worse(n.VM.Condition())
	}
	if len(cores) == 0 {
		return muster.ProgramRun{}, nil, muster.Errorf(muster.EConflict, "no compute node of %s is ready", c.Name).Because(muster.ReasonNotReady).WithHint("wait for one: muster show %s", c.ID)
	}
	f, bad := program.Place(cores, program.Wanted{Ranks: r.Ranks, Nodes: r.Nodes, PerNode: r.PerNode, Threads: r.Settings.Threads})
	return muster.ProgramRun{
		ID: muster.NewProgramRunID(), Program: p.Name, Project: cmp.Or(p.Project, c.Project), Cluster: c.ID, ClusterName: c.Name,
		Version: p.Version(r.Args), Spec: p.ProgramSpec, Args: r.Args, Class: class, Stack: r.Stack, Ranks: f.Ranks, NodeCount: f.Nodes, RanksPerNode: f.PerNode,
		Settings: r.Settings, Timeout: muster.Duration(timeout), State: muster.ProgramRunOpen, Submitted: s.Clock.Now().UTC(), Conditions: muster.TestEnvironment{Image: c.Image, VM: vm},
	}, append(problems, bad...), nil
}

// inputsOn are where the inputs of a program are mounted on a cluster.
func inputsOn(tx *store.Tx, c muster.Cluster, p muster.Program) (map[string]string, []muster.Problem, error) {
	mounts, err := mountsOf(tx.AsSystem(), c)
	if err != nil {
		return nil, nil, err
	}
	at := map[string]string{}
	for _, m := range mounts {
		at[m.Name], at[string(m.ID)] = m.Target, m.Target
	}
	var problems []muster.Problem
	for _, name := range p.Inputs {
		if at[name] == "" {
			problems = append(problems, muster.Problem{Field: "inputs", Reason: muster.ReasonVolumeUnfit, Message: "cluster " + c.Name + " does not have volume " + name + ", which the program reads",
				Hint: "create a cluster with it: muster create NAME --volume " + name})
		}
	}
	return at, problems, nil
}

// RunJob is a run with its scripts, for who goes on with one that was interrupted.
func (s *Service) RunJob(ctx context.Context, who muster.Actor, id string) (wire.ProgramJob, error) {
	var out wire.ProgramJob
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		run, err := tx.ProgramRun(muster.ProgramRunID(id))
		if err != nil {
			return err
		}
		_, builtin := program.Builtin(run.Program)
		out = jobView(muster.Program{Name: run.Program, Project: run.Project, Builtin: builtin, ProgramSpec: run.Spec}, run, nil)
		out.Submit = "" // it was, or never will be: where its inputs were mounted is not on record
		return nil
	})
	return out, err
}

// ReportRun takes what the job of a run printed, and ends the run if that is its end.
func (s *Service) ReportRun(ctx context.Context, who muster.Actor, id string, r wire.RunReport) (wire.RunProgress, error) {
	var run muster.ProgramRun
	if err := s.Store.View(ctx, who, func(tx *store.Tx) (err error) {
		run, err = tx.ProgramRun(muster.ProgramRunID(id))
		return err
	}); err != nil {
		return wire.RunProgress{}, err
	}
	if run.State != muster.ProgramRunOpen {
		return wire.RunProgress{Run: run, Text: "it has ended"}, nil
	}
	ended := run
	text := "it was not submitted"
	if r.Refused != "" {
		s.endRun(ctx, run, program.Report{})
		ended.State, ended.Problem = muster.ProgramRunFailed, "it could not be submitted: "+cleantext.Line(cleantext.Cut(strings.TrimSpace(r.Refused), 1000))
	} else {
		report, err := program.ReadReport(r.Looked)
		if err != nil {
			return wire.RunProgress{}, err
		}
		text = report.Text()
		if report.Open() {
			s.seeRun(ctx, run, report)
			return wire.RunProgress{Run: run, Text: text}, nil
		}
		// Outside of a transaction: patterns take their time.
		ended = program.Judge(run, report)
		ended.UseSeries = s.endRun(ctx, ended, report)
	}
	ended.Ended = s.Clock.Now().UTC()
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		if err := ranOn(tx.AsSystem(), &ended); err != nil {
			return err
		}
		return tx.PutProgramRun(ended)
	})
	return wire.RunProgress{Run: ended, Text: text}, err
}

// ranOn notes what is on record of the machines that a run used.
func ranOn(tx *store.Tx, run *muster.ProgramRun) error {
	nodes, err := tx.Nodes(run.Cluster)
	if err != nil {
		return err
	}
	known := map[string]muster.MachineID{}
	for _, n := range nodes {
		known[n.Name] = n.Machine
	}
	run.Nodes = slices.DeleteFunc(run.Nodes, func(name string) bool { _, ok := known[name]; return !ok })
	c := &run.Conditions
	cluster, err := tx.Cluster(run.Cluster)
	if err != nil {
		return err
	}
	c.Shape, c.LinkRate = cluster.Spec.Shape, cluster.Spec.LinkRate
	for _, name := range run.Nodes {
		m, err := tx.Machine(known[name])
		if muster.CodeOf(err) == muster.ENotFound {
			continue // it is being given back
		}
		if err != nil {
			return err
		}
		run.Machines = append(run.Machines, m.ID)
		f := m.Facts.Shaped(c.Shape)
		if len(run.Machines) == 1 {
			c.Provider, c.Processor, c.Cores, c.Threads, c.Memory = m.Provider, f.Processor, f.Cores, f.Threads, f.Memory
		}
		c.Oversubscribed = c.Oversubscribed || f.Oversubscribed
		for name, other := range map[string]bool{
			"provider": c.Provider != m.Provider, "processor": c.Processor != f.Processor, "cores": c.Cores != f.Cores, "memory": c.Memory != f.Memory,
		} {
			if other && !slices.Contains(c.Differ, name) {
				c.Differ = append(c.Differ, name)
			}
		}
	}
	slices.Sort(c.Differ)
	return nil
}

// ProgramRuns lists runs that the caller may see, the newest first.
func (s *Service) ProgramRuns(ctx context.Context, who muster.Actor, q wire.RunQuery) (wire.ProgramRunList, error) {
	out := wire.ProgramRunList{Runs: []muster.ProgramRun{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		f := store.ProgramRunFilter{Limit: q.Size() + 1, After: q.After}
		f.Program = q.Program
		if project, name, ok := strings.Cut(q.Program, "/"); ok {
			f.Project, f.Program = project, name
		}
		if q.Cluster != "" {
			c, err := tx.FindCluster(q.Cluster)
			if err != nil {
				return err
			}
			f.Cluster = c.ID
		}
		list, err := tx.ProgramRuns(f)
		if err != nil {
			return err
		}
		list, more := partOf(list, q.Page)
		for i := range list {
			list[i].UseSeries = nil // a thousand of them would be long
		}
		out.Runs = append(out.Runs, list...)
		out.More, err = nextAfter(list, more, func(r muster.ProgramRun) (string, error) { return tx.ProgramRunCursor(r.ID) })
		return err
	})
	return out, err
}

// ProgramRun is one run.
func (s *Service) ProgramRun(ctx context.Context, who muster.Actor, id string) (run muster.ProgramRun, err error) {
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		run, err = tx.ProgramRun(muster.ProgramRunID(id))
		return err
	})
	return run, err
}

// CloseLostRuns ends runs that an earlier version of the server left open on clusters which are
// deleted. Today they end with their cluster.
func (s *Service) CloseLostRuns(ctx context.Context) error {
	for {
		n := 0
		err := s.Store.Update(ctx, muster.System(), func(tx *store.Tx) (err error) {
			n, err = tx.CloseLostRuns()
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}
