package store

import (
	"database/sql"
	"errors"

	"github.com/muster-hpc/muster"
)

func programObject() object[muster.Program] {
	return object[muster.Program]{
		kind: "program", audit: muster.AuditProgram, doc: programDoc,
		of: func(p *muster.Program) key {
			return key{id: p.Project + "/" + p.Name, owner: p.Owner, project: p.Project, name: p.Name}
		},
		absent: func(ref string) *muster.Error { return noObject("program", ref, "muster program list") },
	}
}

// Programs are those that the actor may see, by project and name.
func (tx *Tx) Programs() ([]muster.Program, error) { return listObjects(tx, programObject(), "1") }

// Program returns one of a project.
func (tx *Tx) Program(project, name string) (muster.Program, error) {
	return getObject(tx, programObject(), project+"/"+name)
}

// PutProgram keeps a program. The owner, who is in its project, may, and the project's managers.
func (tx *Tx) PutProgram(p muster.Program, text string) error {
	return putObject(tx, programObject(), p, text)
}

// DeleteProgram deletes one. Its runs stay. EForbidden: the actor may only run it.
func (tx *Tx) DeleteProgram(project, name, text string) error {
	return dropObject(tx, programObject(), project+"/"+name, text)
}

// keptRuns is how many runs of a program are kept: the newest.
const keptRuns = 1000

// ProgramRunFilter narrows a list of runs. Zero values ask for everything.
type ProgramRunFilter struct {
	Project string
	Program string
	Cluster muster.ClusterID
	Limit   int    // the newest so many; 0: all
	After   string // only what comes after this cursor
}

func noProgramRun(id muster.ProgramRunID) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no run %.64q of a program", id).Because(muster.ReasonNoSuchObject).
		WithHint("`muster program runs` lists them")
}

func programRunRecord(r muster.ProgramRun) record {
	return record{kind: "program-run", owner: r.By, project: r.Project}
}

// PutProgramRun keeps a run, or what became of it. Whoever ran it may, and nobody else. A run
// that has ended never changes.
//
// Errors: ENotFound if the actor may not, or the cluster is not there, EConflict for one that
// has ended.
func (tx *Tx) PutProgramRun(r muster.ProgramRun) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, programRunRecord(r), noProgramRun(r.ID)); err != nil {
		return err
	}
	if !r.ID.Valid() || r.Program == "" || r.Project == "" || r.By == "" || r.State == "" {
		return defect("a run needs an ID, a program, a project, who ran it and a state")
	}
	if err := checkText(append([]string{r.Program, r.Class, r.Stack, r.Problem, r.Output, r.Spec.Run, r.Spec.Build}, r.Args...)...); err != nil {
		return err
	}
	if r.Submitted.IsZero() {
		r.Submitted = tx.now()
	}
	doc, sum, err := encode(programRunDoc, &r)
	if err != nil {
		return err
	}
	was, err := tx.AsSystem().ProgramRun(r.ID)
	switch {
	case muster.CodeOf(err) == muster.ENotFound:
		if _, err := tx.tenant(r.Cluster); err != nil {
			return err
		}
		if _, err := tx.s.exec(`INSERT INTO program_runs (id, owner, project, cluster, program, state, submitted, sum, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			string(r.ID), r.By, r.Project, string(r.Cluster), r.Program, string(r.State), nanos(r.Submitted), sum, doc); err != nil {
			return err
		}
		if _, err := tx.s.exec(`DELETE FROM program_runs WHERE n IN (SELECT n FROM program_runs WHERE project = ? AND program = ? ORDER BY submitted DESC, n DESC LIMIT 50 OFFSET ?)`,
			r.Project, r.Program, keptRuns); err != nil {
			return err
		}
	case err != nil:
		return err
	case was.By != r.By || was.Project != r.Project || was.Cluster != r.Cluster || was.Program != r.Program:
		return noProgramRun(r.ID)
	case was.State != muster.ProgramRunOpen:
		return muster.Errorf(muster.EConflict, "run %s has ended", r.ID).Because(muster.ReasonImmutable).WithHint("run the program again: muster program run %s %s", r.Cluster, r.Program)
	default:
		if _, err := tx.s.exec(`UPDATE program_runs SET state = ?, sum = ?, doc = ? WHERE id = ?`, string(r.State), sum, doc, string(r.ID)); err != nil {
			return err
		}
	}
	text := "program " + r.Program + " is run"
	if r.State != muster.ProgramRunOpen {
		text = "the run of program " + r.Program + " " + string(r.State)
	}
	return tx.log(muster.Audit{Owner: r.By, Project: r.Project, Cluster: r.Cluster, Kind: muster.AuditProgramRun, Object: string(r.ID),
		From: string(was.State), To: string(r.State), Text: text})
}

// ProgramRun returns one run.
func (tx *Tx) ProgramRun(id muster.ProgramRunID) (muster.ProgramRun, error) {
	list, err := tx.programRuns(`id = ?`, string(id))
	if err != nil {
		return muster.ProgramRun{}, err
	}
	if len(list) == 0 {
		return muster.ProgramRun{}, noProgramRun(id)
	}
	return list[0], nil
}

// ProgramRuns returns the runs that the actor may see, the newest first.
func (tx *Tx) ProgramRuns(f ProgramRunFilter) ([]muster.ProgramRun, error) {
	w := tx.seenBy().is("project", f.Project).is("program", f.Program).is("cluster", string(f.Cluster))
	if err := w.after("submitted", "<", f.After); err != nil {
		return nil, err
	}
	w.by("submitted DESC, n DESC", f.Limit)
	return tx.programRuns(w.cond, w.args...)
}

// programRuns reads rows, and leaves out those that the actor may not see.
func (tx *Tx) programRuns(cond string, args ...any) ([]muster.ProgramRun, error) {
	var list []muster.ProgramRun
	err := tx.s.each(func(r *sql.Rows) error {
		var id, owner, project, doc string
		var sum int64
		if err := r.Scan(&id, &owner, &project, &sum, &doc); err != nil {
			return err
		}
		run, err := decode(programRunDoc, "run "+id+" of a program", doc, sum)
		if err != nil {
			return err
		}
		if run.By != owner || run.Project != project {
			return corrupt("run "+id+" of a program", errors.New("its columns say something else than its document"))
		}
		if allowed(tx.who, read, programRunRecord(run)) {
			list = append(list, run)
		}
		return nil
	}, `SELECT id, owner, project, sum, doc FROM program_runs WHERE `+cond, args...)
	return list, err
}
