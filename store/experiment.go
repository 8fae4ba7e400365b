package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/muster-hpc/muster"
)

// ExperimentFilter narrows a list of experiments. Zero values ask for everything.
type ExperimentFilter struct {
	Project string
	Name    string
	State   muster.ExperimentState
	Limit   int    // the newest so many; 0: all
	After   string // only what comes after this cursor
}

func noExperiment(ref string) *muster.Error {
	return noObject("experiment", ref, "muster experiment list")
}

func experimentRecord(e muster.Experiment) record {
	return record{kind: "experiment", owner: e.By, project: e.Project}
}

// PutExperiment keeps an experiment, or what became of it. Whoever runs it may, and managers of its
// project. Name and project stay as they were.
//
// Errors: ENotFound or EForbidden if the actor may not, EConflict for a name that is taken.
func (tx *Tx) PutExperiment(e muster.Experiment) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, experimentRecord(e), noExperiment(e.Name)); err != nil {
		return err
	}
	if !e.ID.Valid() || e.Name == "" || e.Project == "" || e.By == "" || e.State == "" {
		return defect("an experiment needs an ID, a name, a project, who runs it and a state")
	}
	if err := checkText(e.Name, e.Text, e.Outcome); err != nil {
		return err
	}
	if e.Created.IsZero() {
		e.Created = tx.now()
	}
	doc, sum, err := encode(experimentDoc, &e)
	if err != nil {
		return err
	}
	was, err := tx.AsSystem().Experiment(e.ID)
	text := "experiment " + e.Name + " begins"
	switch {
	case muster.CodeOf(err) == muster.ENotFound:
		others, err := tx.AsSystem().Experiments(ExperimentFilter{Project: e.Project, Name: e.Name})
		if err != nil {
			return err
		}
		if len(others) > 0 {
			return muster.Errorf(muster.EConflict, "project %s has an experiment %s already", e.Project, e.Name).Because(muster.ReasonNameTaken).WithHint("choose another name")
		}
		if _, err := tx.s.exec(`INSERT INTO experiments (id, owner, project, name, state, created, sum, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			string(e.ID), e.By, e.Project, e.Name, string(e.State), nanos(e.Created), sum, doc); err != nil {
			return err
		}
	case err != nil:
		return err
	case was.By != e.By || was.Project != e.Project || was.Name != e.Name:
		return noExperiment(e.Name)
	default:
		if _, err := tx.s.exec(`UPDATE experiments SET state = ?, sum = ?, doc = ? WHERE id = ?`, string(e.State), sum, doc, string(e.ID)); err != nil {
			return err
		}
		text = "experiment " + e.Name + " is " + string(e.State)
	}
	if was.State == e.State {
		return nil
	}
	if e.Outcome != "" {
		text += ": " + e.Outcome
	}
	return tx.log(muster.Audit{Owner: e.By, Project: e.Project, Kind: muster.AuditExperiment, Object: string(e.ID), From: string(was.State), To: string(e.State), Text: text})
}

// Experiment returns one by its ID.
func (tx *Tx) Experiment(id muster.ExperimentID) (muster.Experiment, error) {
	list, err := tx.experiments(`id = ?`, string(id))
	if err != nil {
		return muster.Experiment{}, err
	}
	if len(list) == 0 {
		return muster.Experiment{}, noExperiment(string(id))
	}
	return list[0], nil
}

// Experiments returns those that the actor may see, the newest first.
func (tx *Tx) Experiments(f ExperimentFilter) ([]muster.Experiment, error) {
	w := tx.seenBy().is("project", f.Project).is("name", f.Name).is("state", string(f.State))
	if err := w.after("created", "<", f.After); err != nil {
		return nil, err
	}
	w.by("created DESC, n DESC", f.Limit)
	return tx.experiments(w.cond, w.args...)
}

func (tx *Tx) experiments(cond string, args ...any) ([]muster.Experiment, error) {
	var list []muster.Experiment
	err := tx.s.each(func(r *sql.Rows) error {
		var id, owner, project, name, doc string
		var sum int64
		if err := r.Scan(&id, &owner, &project, &name, &sum, &doc); err != nil {
			return err
		}
		e, err := decode(experimentDoc, "experiment "+id, doc, sum)
		if err != nil {
			return err
		}
		if e.By != owner || e.Project != project || e.Name != name {
			return corrupt("experiment "+id, errors.New("its columns say something else than its document"))
		}
		if allowed(tx.who, read, experimentRecord(e)) {
			list = append(list, e)
		}
		return nil
	}, `SELECT id, owner, project, name, sum, doc FROM experiments WHERE `+cond, args...)
	return list, err
}

// PutExperimentLaunch keeps a launch of an experiment that the actor may change, or what became of
// it. One that has ended stays as it is.
func (tx *Tx) PutExperimentLaunch(l muster.ExperimentLaunch) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	e, err := tx.Experiment(l.Experiment)
	if err != nil {
		return err
	}
	if err := authorize(tx.who, write, experimentRecord(e), noExperiment(e.Name)); err != nil {
		return err
	}
	if err := checkText(l.Problem); err != nil {
		return err
	}
	doc, sum, err := encode(experimentLaunchDoc, &l)
	if err != nil {
		return err
	}
	old, err := tx.launches(`experiment = ? AND n = ?`, string(l.Experiment), l.N)
	if err != nil {
		return err
	}
	if len(old) == 1 && old[0].State != muster.ProgramRunOpen {
		return muster.Errorf(muster.EConflict, "launch %d of experiment %s has ended", l.N, e.Name).Because(muster.ReasonImmutable).WithHint("what it showed stays as it is")
	}
	_, err = tx.s.exec(`INSERT INTO experiment_launches (experiment, n, sum, doc) VALUES (?, ?, ?, ?)
		ON CONFLICT (experiment, n) DO UPDATE SET sum = excluded.sum, doc = excluded.doc`, string(l.Experiment), l.N, sum, doc)
	return err
}

// ExperimentLaunches returns the launches of an experiment that the actor may see, in order: those
// after number after (-1: from the first), at most limit (0: all).
func (tx *Tx) ExperimentLaunches(id muster.ExperimentID, after, limit int) ([]muster.ExperimentLaunch, error) {
	if _, err := tx.Experiment(id); err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = -1
	}
	return tx.launches(`experiment = ? AND n > ? ORDER BY n LIMIT ?`, string(id), after, limit)
}

func (tx *Tx) launches(cond string, args ...any) ([]muster.ExperimentLaunch, error) {
	var list []muster.ExperimentLaunch
	err := tx.s.each(func(r *sql.Rows) error {
		var id, doc string
		var n int
		var sum int64
		if err := r.Scan(&id, &n, &sum, &doc); err != nil {
			return err
		}
		what := fmt.Sprintf("launch %d of experiment %s", n, id)
		l, err := decode(experimentLaunchDoc, what, doc, sum)
		if err != nil {
			return err
		}
		if string(l.Experiment) != id || l.N != n {
			return corrupt(what, errors.New("its columns say something else than its document"))
		}
		list = append(list, l)
		return nil
	}, `SELECT experiment, n, sum, doc FROM experiment_launches WHERE `+cond, args...)
	return list, err
}

// CountExperimentLaunches counts the launches of an experiment.
func (tx *Tx) CountExperimentLaunches(id muster.ExperimentID) (n int, err error) {
	err = tx.s.one([]any{&n}, `SELECT count(*) FROM experiment_launches WHERE experiment = ?`, string(id))
	return n, err
}
