package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// A cursor says after which row a list goes on: the time by which it is ordered and n,
// which orders rows of one time. It is of use also when that row is gone.

// ClusterCursor is where a cluster stands in the list of clusters.
func (tx *Tx) ClusterCursor(id muster.ClusterID) (string, error) {
	return tx.cursor("clusters", "created", string(id))
}

// VolumeCursor is where a volume stands in the list of volumes.
func (tx *Tx) VolumeCursor(id muster.VolumeID) (string, error) {
	return tx.cursor("volumes", "created", string(id))
}

// CertificateCursor is where a certificate stands in the list of certificates.
func (tx *Tx) CertificateCursor(id muster.CertificateID) (string, error) {
	return tx.cursor("certificates", "made", string(id))
}

// HPLCursor is where a result of HPL stands in the list of results, the newest first.
func (tx *Tx) HPLCursor(id muster.HPLID) (string, error) { return tx.cursor("hpl", "made", string(id)) }

// ProgramRunCursor is where a run of a program stands in the list of runs, the newest first.
func (tx *Tx) ProgramRunCursor(id muster.ProgramRunID) (string, error) {
	return tx.cursor("program_runs", "submitted", string(id))
}

// ExperimentCursor is where an experiment stands in the list of experiments, the newest first.
func (tx *Tx) ExperimentCursor(id muster.ExperimentID) (string, error) {
	return tx.cursor("experiments", "created", string(id))
}

func (tx *Tx) cursor(table, column, id string) (string, error) {
	var at, n int64
	err := tx.s.one([]any{&at, &n}, fmt.Sprintf(`SELECT %s, n FROM %s WHERE id = ?`, column, table), id)
	return strconv.FormatInt(at, 10) + "." + strconv.FormatInt(n, 10), err
}

// after leaves out what comes not after a cursor in a list that is ordered by column and
// n; op is > for one that grows. EInvalid: it is not a cursor.
func (w *where) after(column, op, cursor string) error {
	if cursor == "" {
		return nil
	}
	left, right, _ := strings.Cut(cursor, ".")
	at, err := strconv.ParseInt(left, 10, 64)
	n, err2 := strconv.ParseInt(right, 10, 64)
	if err != nil || err2 != nil {
		return muster.Errorf(muster.EInvalid, "%.40q is not a place in this list", cursor).Because(muster.ReasonBadValue).
			WithHint("send what next of the page before says, or nothing")
	}
	w.and("("+column+", n) "+op+" (?, ?)", at, n)
	return nil
}

// CreatedCursor is where clusters begin in their list that were created after a time.
func CreatedCursor(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) + ".0" }
