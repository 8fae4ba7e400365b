package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/wire"
)

const twoBlocks = `name: blocks
seed: 5
cluster: {nodes: 2, head: shared}
matrix:
  program: md
  cluster: [{label: one}, {label: two, egress: none}]
launches: 4
timeout: 1m
`

// passedLook is what the job of a run prints that took so many seconds.
const passedLook = "state ended\nphase run\nrun 1 3\nstatus 0\nnodes n01 n02\noutput\nok\n"

// walkExperiment does the steps of an experiment as a client does, but that jobs end at once.
// Before each, see may look at it, and do something else with true.
func walkExperiment(t *testing.T, k *client.Client, name string, see func(wire.ExperimentStep) bool) (steps []string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		s, err := k.NextStep(t.Context(), name, wire.ExperimentCall{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Do != wire.ExperimentWait {
			steps = append(steps, string(s.Do))
		}
		if see != nil && see(s) {
			continue
		}
		switch s.Do {
		case wire.ExperimentEnd:
			return steps
		case wire.ExperimentCreate:
			_, err = k.CreateCluster(t.Context(), client.Create{Body: []byte(s.Request), Format: "json", Key: s.Key})
		case wire.ExperimentRelease:
			_, err = k.DeleteCluster(t.Context(), string(s.Cluster))
		case wire.ExperimentLaunch:
			_, err = k.ReportRun(t.Context(), s.Job.Run.ID, wire.RunReport{Looked: []byte(passedLook)})
		default:
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			t.Fatalf("%s: %v", s.Do, err)
		}
	}
	t.Fatalf("it does not end: %v", steps)
	return nil
}

// An experiment with two blocks asks for each visit's cluster once, in the order A B B A, and
// gives it back; whoever asks again for the step gets the same one.
func TestExperimentOnItsOwnClusters(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 8, Build: true})
	k := s.Client(s.User("alice", "aero"))
	if _, err := k.AddProgram(t.Context(), wire.ProgramRequest{Name: "md", Image: "hpc", Run: "./md", Check: "ok"}); err != nil {
		t.Fatal(err)
	}
	dry, err := k.StartExperiment(t.Context(), wire.ExperimentRequest{Text: twoBlocks, DryRun: true})
	if err != nil || len(dry.Plan.Cells) != 2 || dry.Plan.Blocks[0].Machines != 2 || dry.Plan.AtMost <= 0 {
		t.Fatalf("%+v, %v", dry, err)
	}
	if list, err := k.Experiments(t.Context()); err != nil || len(list.Experiments) != 0 {
		t.Errorf("a dry run is kept: %+v, %v", list, err)
	}
	e, err := k.StartExperiment(t.Context(), wire.ExperimentRequest{Text: twoBlocks})
	if err != nil || e.Resumed || e.Plan.PerVisit != 2 {
		t.Fatalf("%+v, %v", e, err)
	}
	again := map[string]string{}
	steps := walkExperiment(t, k, "blocks", func(step wire.ExperimentStep) bool {
		same, err := k.NextStep(t.Context(), "aero/blocks", wire.ExperimentCall{})
		switch {
		case err != nil:
			t.Fatal(err)
		case step.Do == wire.ExperimentLaunch && (same.Do != step.Do || same.Job.Run.ID != step.Job.Run.ID || same.Job.Submit != step.Job.Submit || same.Job.Submit == ""):
			t.Errorf("asked again, the launch is another: %+v, %+v", step, same)
		case step.Do == wire.ExperimentCreate && (same.Key != step.Key || same.Cluster != step.Cluster || again[step.Key] != ""):
			t.Errorf("asked again, the cluster is another: %+v, %+v", step, same)
		}
		if step.Do == wire.ExperimentCreate {
			again[step.Key] = step.Request
			for range 2 { // as after a reply that was lost
				if c, err := k.CreateCluster(t.Context(), client.Create{Body: []byte(step.Request), Format: "json", Key: step.Key}); err != nil || c.ID != step.Cluster {
					t.Errorf("%+v, %v", c, err)
				}
			}
			return true
		}
		return false
	})
	visit := func(n int) string { return "create " + strings.Repeat("launch ", n) + "release " }
	if got, want := strings.Join(steps, " "), visit(2)+visit(4)+visit(2)+"end"; got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
	shown, err := k.Experiment(t.Context(), string(e.ID), wire.ExperimentForecast{})
	if err != nil || shown.State != muster.ExperimentDone || shown.Result.Launches != 8 || len(shown.Clusters) != 3 {
		t.Errorf("%+v, %v", shown, err)
	}
	for _, r := range shown.Result.Rows {
		if r.Kept.N != 4 || r.Kept.Median != 2 || r.Unit != "s" {
			t.Errorf("%+v", r)
		}
	}
	for i, c := range shown.Clusters {
		if c.Block != i%2 || c.Visit != i || c.Ended.IsZero() || c.Problem != "" {
			t.Errorf("%+v", c)
		}
	}
	// It is complete: the same file shows it, another one is refused.
	if e, err := k.StartExperiment(t.Context(), wire.ExperimentRequest{Text: twoBlocks}); err != nil || !e.Resumed || e.State != muster.ExperimentDone {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := k.StartExperiment(t.Context(), wire.ExperimentRequest{Text: twoBlocks + "budget: 3\n"}); muster.ReasonOf(err) != muster.ReasonNameTaken {
		t.Error(err)
	}
	runs, err := k.ProgramRuns(t.Context(), wire.RunQuery{Program: "md"})
	if err != nil || len(runs.Runs) != 8 || runs.Runs[0].Experiment != e.ID {
		t.Errorf("%+v, %v", runs, err)
	}
}

// A cluster that is lost under a launch, and one that is refused; an interruption and a budget.
func TestExperimentsGoOnAndEnd(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4, Build: true})
	k := s.Client(s.User("alice", "aero"))
	if _, err := k.AddProgram(t.Context(), wire.ProgramRequest{Name: "md", Image: "hpc", Run: "./md {args}"}); err != nil {
		t.Fatal(err)
	}
	start := func(text string) {
		t.Helper()
		if _, err := k.StartExperiment(t.Context(), wire.ExperimentRequest{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	start("name: lost\ncluster: {nodes: 1, head: shared}\nmatrix: {program: md}\nlaunches: 2\n")
	lost := 0
	steps := walkExperiment(t, k, "lost", func(step wire.ExperimentStep) bool {
		if step.Do != wire.ExperimentLaunch || lost == 2 {
			return false
		}
		lost++
		_, err := k.DeleteCluster(t.Context(), string(step.Cluster))
		// The second one is gone when it is asked what comes next, and its run has ended with it.
		for deadline := time.Now().Add(2 * time.Minute); lost == 2 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if run, err := k.ProgramRun(t.Context(), string(step.Job.Run.ID)); err != nil || run.Lost {
				return err == nil && run.State == muster.ProgramRunFailed
			}
		}
		return err == nil
	})
	if got := strings.Join(steps, " "); got != "create launch create launch create launch launch release end" {
		t.Error(got)
	}
	list, err := k.ExperimentLaunches(t.Context(), "lost")
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i := range 2 {
		if l := list[i]; l.Slot != list[2].Slot || len(l.Discarded) != 1 || l.Discarded[0] != muster.DiscardClusterLost || l.Problem == "" {
			t.Errorf("%+v", l)
		}
	}

	start("name: interrupted\ncluster: {nodes: 1, head: shared}\nmatrix: {program: md}\nlaunches: 1\n")
	left := false
	steps = walkExperiment(t, k, "interrupted", func(step wire.ExperimentStep) bool {
		if step.Do != wire.ExperimentLaunch || left {
			return false
		}
		left = true
		bye, err := k.NextStep(t.Context(), "interrupted", wire.ExperimentCall{Interrupted: true})
		if err != nil || bye.Do != wire.ExperimentRelease || bye.State != muster.ExperimentOpen {
			t.Errorf("%+v, %v", bye, err)
		}
		if _, err := k.DeleteCluster(t.Context(), string(bye.Cluster)); err != nil {
			t.Error(err)
		}
		if bye, err = k.NextStep(t.Context(), "interrupted", wire.ExperimentCall{Interrupted: true}); err != nil || bye.Do != wire.ExperimentEnd {
			t.Errorf("%+v, %v", bye, err)
		}
		return true
	})
	if got := strings.Join(steps, " "); got != "create launch create launch release end" {
		t.Error(got)
	}

	start("name: refused\ncluster: {nodes: 1, head: shared}\nmatrix: {program: md}\nlaunches: 1\n")
	if step, err := k.NextStep(t.Context(), "refused", wire.ExperimentCall{}); err != nil || step.Do != wire.ExperimentCreate {
		t.Errorf("%+v, %v", step, err)
	}
	if step, err := k.NextStep(t.Context(), "refused", wire.ExperimentCall{Refused: "over the limit"}); err != nil || step.Do != wire.ExperimentEnd || step.State != muster.ExperimentFailed || !strings.Contains(step.Text, "over the limit") {
		t.Errorf("%+v, %v", step, err)
	}

	// A job may take twelve minutes, and takes two seconds: the first may be begun, and no other.
	if _, err := k.CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: cfd\nnodes: 1\nhead: shared")}); err != nil {
		t.Fatal(err)
	}
	waitReady(t, k)
	start("name: poor\ncluster: cfd\nmatrix: {program: md}\nlaunches: 3\nbudget: 0.2003\n")
	if steps := walkExperiment(t, k, "poor", nil); strings.Join(steps, " ") != "launch end" {
		t.Error(steps)
	}
	_, err = k.StartExperiment(t.Context(), wire.ExperimentRequest{Text: "name: poorer\ncluster: {nodes: 1, head: shared}\nmatrix: {program: md}\nlaunches: 3\nbudget: 0.3\n"})
	if list := errortest.Listed(err); len(list) != 1 || list[0].Field != "budget" || !strings.Contains(list[0].Message, "0.367 machine-hours") {
		t.Errorf("a budget below one launch: %+v", list)
	}
	if e, err := k.Experiment(t.Context(), "poor", wire.ExperimentForecast{}); err != nil || !strings.Contains(e.Outcome, "budget") {
		t.Errorf("%+v, %v", e, err)
	}
	for text, field := range map[string]string{
		"matrix: {program: none}":                  "matrix.program",
		"matrix: {program: md, class: A}":          "class",
		"matrix: {program: md, threads: 99999999}": "threads",
	} {
		_, err := k.StartExperiment(t.Context(), wire.ExperimentRequest{Text: "name: x\ncluster: {nodes: 1, head: shared}\n" + text})
		var e *muster.Error
		if !errors.As(err, &e) || len(e.Problems) != 1 || e.Problems[0].Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Members of the project see an experiment; its steps are of who began it.
func TestWhoMayDoWhatWithExperiments(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	alice, bob, dave := s.Client(s.User("alice", "aero")), s.Client(s.User("bob", "aero")), s.Client(s.User("dave", "sky"))
	if _, err := alice.AddProgram(t.Context(), wire.ProgramRequest{Name: "md", Image: "hpc", Run: "./md"}); err != nil {
		t.Fatal(err)
	}
	text := "name: mine\ncluster: {nodes: 1, head: shared}\nmatrix: {program: md}\n"
	if _, err := alice.StartExperiment(t.Context(), wire.ExperimentRequest{Text: text}); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for who, want := range map[*client.Client][4]muster.Code{
		bob:  {"", muster.EForbidden, muster.EForbidden, muster.EConflict},
		dave: {muster.ENotFound, muster.ENotFound, muster.ENotFound, muster.EInvalid},
	} {
		_, show := who.Experiment(ctx, "mine", wire.ExperimentForecast{})
		_, next := who.NextStep(ctx, "mine", wire.ExperimentCall{})
		_, stop := who.StopExperiment(ctx, "mine")
		_, start := who.StartExperiment(ctx, wire.ExperimentRequest{Text: text})
		for i, err := range []error{show, next, stop, start} {
			if muster.CodeOf(err) != want[i] {
				t.Errorf("%d: %v, want %q", i, err, want[i])
			}
		}
	}
	e, err := alice.StopExperiment(ctx, "mine")
	if err != nil || e.State != muster.ExperimentStopped {
		t.Errorf("%+v, %v", e, err)
	}
}

// A content of an image from before a built-in program is refused before a cluster is asked for.
func TestImageOlderThanItsProgram(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	k := s.Client(s.User("alice", "aero"))
	file := wire.ExperimentRequest{Text: "name: old\ncluster: {nodes: 1, head: shared}\nmatrix: {program: ep, class: S, ranks: 1}\nlaunches: 2\n", DryRun: true}
	if _, err := k.StartExperiment(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	s.Images.Lack("usr/libexec/muster/muster-ep")
	_, err := k.StartExperiment(t.Context(), file)
	if bad := errortest.Listed(err); len(bad) != 1 || bad[0].Field != "cluster.image" || bad[0].Reason != muster.ReasonImageLacks || bad[0].Hint == "" {
		t.Errorf("%v: %+v", err, bad)
	}
}
