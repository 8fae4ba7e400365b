package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strconv"

	"github.com/muster-hpc/muster"
)

// Snapshot copies the store at path, as it is at one moment, into a new file. A server
// may use it meanwhile: it does not notice, and what it has not committed is not in the
// copy. What is in the log of a store that nobody closed is.
func Snapshot(ctx context.Context, path, into string) error {
	if st, err := os.Stat(path); err != nil {
		return explainFile(err)
	} else if st.Size() == 0 {
		return muster.Errorf(muster.ENotFound, "the database %s is empty", path).Because(muster.ReasonNoState).WithHint("name the --state of the server")
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "_pragma=busy_timeout(30000)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, into)
	if err = errors.Join(err, db.Close()); err != nil {
		return muster.Errorf(muster.EUnavailable, "copying the database failed").Because(muster.ReasonStoreUnusable).WithHint("is there room on its disk?").Wrap(err)
	}
	return os.Chmod(into, 0o600)
}

// BeginEpoch makes of a copy of the store one that goes on where it was taken, in a new
// epoch.
func BeginEpoch(ctx context.Context, path string, epoch int64) error {
	db, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	err = db.Update(ctx, muster.System(), func(tx *Tx) error { return tx.BeginEpoch(epoch) })
	return errors.Join(err, db.Close())
}

// BeginEpoch continues the records in a new epoch. What was good for one time, or until a
// machine was given to somebody, may not be so since they were taken: the one-time tokens of
// machines, the word of a human that a machine is cut off, and that a free one is clean.
func (tx *Tx) BeginEpoch(epoch int64) error {
	if _, err := tx.s.exec(`DELETE FROM joins`); err != nil {
		return err
	}
	list, err := tx.Registrations(RegistrationFilter{})
	if err != nil {
		return err
	}
	for _, r := range list {
		if r.ManualFence == nil {
			continue
		}
		r.ManualFence = nil
		if err := tx.PutRegistration(r, "a new epoch: whether it is cut off is asked again"); err != nil {
			return err
		}
	}
	free, err := tx.Machines(MachineFilter{Phases: []muster.MachinePhase{muster.MachineFree}})
	if err != nil {
		return err
	}
	for _, m := range free {
		m.Phase, m.PhaseSince = muster.MachineCleaning, tx.now()
		if err := tx.PutMachine(m, "a new epoch: somebody may have had it since"); err != nil {
			return err
		}
	}
	return tx.SetMeta("epoch", strconv.FormatInt(epoch, 10))
}
