package store

import (
	"database/sql"

	"github.com/muster-hpc/muster"
)

// closeRunsOf ends the runs of programs that are open on a cluster which is gone: nobody can read
// what became of their jobs any more.
func (tx *Tx) closeRunsOf(c muster.Cluster) error {
	_, err := tx.closeRuns(`cluster = ? AND state = 'open'`, string(c.ID))
	return err
}

// closedAtOnce is how many runs one transaction ends.
const closedAtOnce = 500

// CloseLostRuns ends open runs of programs on clusters that are deleted, such as an earlier version
// left them, and returns how many. There may be more, unless there were none. Only for the server
// itself.
func (tx *Tx) CloseLostRuns() (int, error) {
	return tx.AsSystem().closeRuns(`state = 'open' AND cluster IN (SELECT id FROM clusters WHERE phase = 'deleted') LIMIT ?`, closedAtOnce)
}

// closeRuns ends the runs that match. One that cannot be read stays: it must not keep a cluster
// from going away.
func (tx *Tx) closeRuns(cond string, args ...any) (int, error) {
	var ids []string
	err := tx.s.each(func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM program_runs WHERE `+cond, args...)
	if err != nil {
		return 0, err
	}
	sys, closed := tx.AsSystem(), 0
	for _, id := range ids {
		run, err := sys.ProgramRun(muster.ProgramRunID(id))
		if muster.CodeOf(err) == muster.ECorrupt {
			continue
		}
		if err != nil {
			return closed, err
		}
		run.State, run.Ended, run.Lost = muster.ProgramRunFailed, tx.now(), true
		run.Problem = "its cluster was deleted before its result was read"
		if err := sys.PutProgramRun(run); err != nil {
			return closed, err
		}
		closed++
	}
	return closed, nil
}
