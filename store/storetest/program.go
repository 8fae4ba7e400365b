package storetest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// NewProgram is a program that alice added to a project.
func NewProgram(name, project string) muster.Program {
	return muster.Program{Name: name, Project: project, Owner: "alice", Created: NewClock().Now(), ProgramSpec: muster.ProgramSpec{
		Image: "hpc", Build: "make", Run: "mpirun -n {ranks} ./md", Check: "Finished", Inputs: []string{"inputs"},
		Metric: &muster.ProgramMetric{Name: "ns/day", Unit: "ns/day", Pattern: "Performance: ([0-9.]+)", Better: muster.BetterHigher},
	}}
}

// NewProgramRun is an open run of a program on a cluster.
func NewProgramRun(p muster.Program, cluster muster.ClusterID, by string) muster.ProgramRun {
	return muster.ProgramRun{
		ID: muster.NewProgramRunID(), Program: p.Name, Project: p.Project, By: by, Cluster: cluster, ClusterName: "cfd", Version: p.Version(nil),
		Spec: p.ProgramSpec, Ranks: 2, NodeCount: 2, RanksPerNode: 1, Timeout: muster.Duration(time.Minute), State: muster.ProgramRunOpen, Submitted: NewClock().Now(),
	}
}

// testPrograms: members see what their project has, and whoever added it, or manages the
// project, takes it away.
func testPrograms(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	p := NewProgram("md", "sea")
	do := func(who muster.Actor, f func(*store.Tx) error) error { return db.Update(context.Background(), who, f) }
	put := func(tx *store.Tx) error { return tx.PutProgram(p, "added") }
	drop := func(tx *store.Tx) error { return tx.DeleteProgram("sea", "md", "removed") }
	wantCode(t, do(muster.Actor{Name: "alice", Projects: []string{"lake"}}, put), muster.ENotFound)
	for _, who := range []muster.Actor{alice(), bob(), root()} {
		if err := do(who, put); err != nil {
			t.Errorf("%s cannot put it: %v", who.Name, err)
		}
		wantCode(t, do(dave(), drop), muster.EForbidden)
		wantCode(t, do(dave(), put), muster.EForbidden)
		wantCode(t, do(carol(), drop), muster.ENotFound)
		view(t, db, dave(), func(tx *store.Tx) error {
			if got, err := tx.Program("sea", "md"); err != nil || !reflect.DeepEqual(got, p) {
				t.Errorf("got %+v, %v", got, err)
			}
			return nil
		})
		view(t, db, carol(), func(tx *store.Tx) error {
			list, err := tx.Programs()
			if len(list) != 0 {
				t.Errorf("a stranger sees %+v", list)
			}
			return err
		})
		if err := do(who, drop); err != nil {
			t.Errorf("%s cannot take it away: %v", who.Name, err)
		}
	}
}

// testProgramRuns: who ran a program keeps what became of it, once; the project sees it.
func testProgramRuns(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	addPeople(t, db)
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	p := NewProgram("md", "sea")
	put := func(who muster.Actor, r muster.ProgramRun) error {
		return db.Update(context.Background(), who, func(tx *store.Tx) error { return tx.PutProgramRun(r) })
	}
	r := NewProgramRun(p, c.ID, "bob")
	if err := put(bob(), r); err != nil {
		t.Fatal(err)
	}
	done := r
	done.State, done.Nodes = muster.ProgramRunPassed, []string{"n01", "n02"}
	done.Figure = &muster.ProgramFigure{Name: "ns/day", Unit: "ns/day", Value: 12.5, Better: muster.BetterHigher, Source: muster.FigureOfProgram}
	wantCode(t, put(alice(), done), muster.EForbidden)
	for _, who := range []muster.Actor{carol(), {}} {
		wantCode(t, put(who, done), muster.ENotFound)
	}
	stolen := done
	stolen.By = "alice"
	wantCode(t, put(alice(), stolen), muster.ENotFound)
	if err := put(bob(), done); err != nil {
		t.Fatal(err)
	}
	wantCode(t, put(bob(), done), muster.EConflict)
	for _, x := range []struct {
		who  muster.Actor
		want int
	}{{alice(), 1}, {bob(), 1}, {carol(), 0}, {root(), 1}, {muster.Actor{}, 0}} {
		view(t, db, x.who, func(tx *store.Tx) error {
			list, err := tx.ProgramRuns(store.ProgramRunFilter{Project: "sea", Program: "md", Cluster: c.ID})
			if err != nil || len(list) != x.want || x.want == 1 && !reflect.DeepEqual(list[0], done) {
				t.Errorf("%s sees %+v, %v", x.who.Name, list, err)
			}
			_, err = tx.ProgramRun(r.ID)
			if (err == nil) != (x.want == 1) {
				t.Errorf("%s: %v", x.who.Name, err)
			}
			return nil
		})
	}
	lines := audits(t, db, alice(), store.AuditFilter{Kind: muster.AuditProgramRun})
	if len(lines) != 2 || lines[1].From != "open" || lines[1].To != "passed" || lines[1].Object != string(r.ID) {
		t.Errorf("the audit has %+v", lines)
	}
	wantCode(t, put(bob(), NewProgramRun(p, "c-nothing", "bob")), muster.ENotFound)
	// The newest are kept, of each program.
	other := NewProgramRun(NewProgram("qc", "sea"), c.ID, "bob")
	update(t, db, bob(), func(tx *store.Tx) error {
		if err := tx.PutProgramRun(other); err != nil {
			return err
		}
		for range 1005 {
			n := NewProgramRun(p, c.ID, "bob")
			n.Submitted = clock.Now()
			if err := tx.PutProgramRun(n); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, db, bob(), func(tx *store.Tx) error {
		list, err := tx.ProgramRuns(store.ProgramRunFilter{Program: "md"})
		if len(list) != 1000 {
			t.Errorf("%d runs, %v", len(list), err)
		}
		_, err = tx.ProgramRun(other.ID)
		return err
	})
}

// testRunsEndWithTheirCluster: nobody can read what became of a run whose cluster is gone.
func testRunsEndWithTheirCluster(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	addPeople(t, db)
	c, other := NewCluster("cfd", "alice", "sea"), NewCluster("other", "alice", "sea")
	p := NewProgram("md", "sea")
	open, passed, elsewhere := NewProgramRun(p, c.ID, "bob"), NewProgramRun(p, c.ID, "bob"), NewProgramRun(p, other.ID, "bob")
	update(t, db, alice(), func(tx *store.Tx) error {
		if err := tx.PutCluster(other, ""); err != nil {
			return err
		}
		return tx.PutCluster(c, "")
	})
	update(t, db, bob(), func(tx *store.Tx) error {
		for _, r := range []muster.ProgramRun{open, passed, elsewhere} {
			if err := tx.PutProgramRun(r); err != nil {
				return err
			}
		}
		ended := passed
		ended.State = muster.ProgramRunPassed
		return tx.PutProgramRun(ended)
	})
	get := func(id muster.ProgramRunID) (r muster.ProgramRun) {
		t.Helper()
		view(t, db, bob(), func(tx *store.Tx) (err error) {
			r, err = tx.ProgramRun(id)
			return err
		})
		return r
	}
	for _, phase := range []muster.ClusterPhase{muster.ClusterDeleting, muster.ClusterDeleted} {
		if got := get(open.ID); got.State != muster.ProgramRunOpen {
			t.Errorf("before %s it is %s", phase, got.State)
		}
		c.Phase = phase
		update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	}
	if got := get(open.ID); got.State != muster.ProgramRunFailed || !got.Lost || got.Problem == "" || got.Ended.IsZero() {
		t.Errorf("the open one is %+v", got)
	}
	if got := get(passed.ID); got.State != muster.ProgramRunPassed || got.Lost {
		t.Errorf("the one that had ended is %+v", got)
	}
	if got := get(elsewhere.ID); got.State != muster.ProgramRunOpen {
		t.Errorf("the one of another cluster is %+v", got)
	}
	if lines := audits(t, db, alice(), store.AuditFilter{Kind: muster.AuditProgramRun}); lines[len(lines)-1].To != "failed" || lines[len(lines)-1].Object != string(open.ID) {
		t.Errorf("the audit has %+v", lines)
	}
}

// NewExperiment is an experiment of somebody that has begun.
func NewExperiment(name, project, by string) muster.Experiment {
	return muster.Experiment{
		ID: muster.NewExperimentID(), Name: name, Project: project, By: by, Created: NewClock().Now(), Text: "name: " + name, State: muster.ExperimentOpen,
		Plan: muster.ExperimentPlan{Max: 2, PerVisit: 1, Looks: []int{2}, Discard: []muster.DiscardRule{}, Blocks: []muster.ExperimentBlock{{Name: "all"}},
			Cells: []muster.ExperimentCell{{Factors: map[string]string{"program": "md"}, ExperimentFactors: muster.ExperimentFactors{Program: "md"}}}},
	}
}

// testExperiments: the project sees them, who runs them and managers change them; a launch that
// has ended stays as it is.
func testExperiments(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	put := func(who muster.Actor, e muster.Experiment) error {
		return db.Update(context.Background(), who, func(tx *store.Tx) error { return tx.PutExperiment(e) })
	}
	launch := func(who muster.Actor, l muster.ExperimentLaunch) error {
		return db.Update(context.Background(), who, func(tx *store.Tx) error { return tx.PutExperimentLaunch(l) })
	}
	e := NewExperiment("spread", "sea", "alice")
	for range 2 {
		if err := put(alice(), e); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, put(alice(), NewExperiment("spread", "sea", "alice")), muster.EConflict)
	wantCode(t, put(dave(), e), muster.EForbidden)
	wantCode(t, put(carol(), e), muster.ENotFound)
	stolen := e
	stolen.Name = "other"
	wantCode(t, put(alice(), stolen), muster.ENotFound)
	for n := range 3 {
		l := muster.ExperimentLaunch{Experiment: e.ID, N: n, Slot: n, State: muster.ProgramRunOpen, Cluster: "c-x"}
		if err := launch(alice(), l); err != nil {
			t.Fatal(err)
		}
		wantCode(t, launch(dave(), l), muster.EForbidden)
		wantCode(t, launch(carol(), l), muster.ENotFound)
		l.State = muster.ProgramRunPassed
		if err := launch(alice(), l); err != nil {
			t.Fatal(err)
		}
		wantCode(t, launch(alice(), l), muster.EConflict)
	}
	e.State, e.Outcome = muster.ExperimentDone, "complete"
	if err := put(alice(), e); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		who  muster.Actor
		want int
	}{{alice(), 1}, {dave(), 1}, {carol(), 0}, {root(), 1}, {muster.Actor{}, 0}} {
		view(t, db, x.who, func(tx *store.Tx) error {
			list, err := tx.Experiments(store.ExperimentFilter{Name: "spread"})
			if err != nil || len(list) != x.want || x.want == 1 && !reflect.DeepEqual(list[0], e) {
				t.Errorf("%s sees %+v, %v", x.who.Name, list, err)
			}
			launches, err := tx.ExperimentLaunches(e.ID, 0, 1)
			if (err == nil) != (x.want == 1) || x.want == 1 && (len(launches) != 1 || launches[0].N != 1) {
				t.Errorf("%s sees %+v, %v", x.who.Name, launches, err)
			}
			return nil
		})
	}
	lines := audits(t, db, alice(), store.AuditFilter{Kind: muster.AuditExperiment})
	if len(lines) != 2 || lines[1].From != "open" || lines[1].To != "done" {
		t.Errorf("the audit has %+v", lines)
	}
}
