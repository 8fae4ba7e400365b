package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/muster-hpc/muster"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Points at which Options.Fault is called, in the order of an Update.
const (
	PointBegin        = "begin"         // before the function runs
	PointChanged      = "changed"       // the function ran; nothing is committed
	PointBeforeCommit = "before-commit" // once per group of Updates
	PointAfterCommit  = "after-commit"  // durable, and nobody was told
	PointPublished    = "published"     // the feeds were told, the callers not
)

// Points lists every point, so that a test can crash at each.
func Points() []string {
	return []string{PointBegin, PointChanged, PointBeforeCommit, PointAfterCommit, PointPublished}
}

// explain turns an error of the database into one that says what to do.
// Errors that are explained already pass through.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var known *muster.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return muster.Errorf(muster.ETimeout, "timed out waiting for the database").Because(muster.ReasonNoAnswer).Wrap(err)
	}
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return defect("database error").Wrap(err)
	}
	return explainSQLite(se.Code(), err)
}

func explainSQLite(code int, err error) *muster.Error {
	e := func(why muster.Reason, message, hint string) *muster.Error {
		return muster.Errorf(muster.EUnavailable, "%s", message).Because(why).WithHint("%s", hint).Wrap(err)
	}
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		return e(muster.ReasonDiskFull, "the disk of the database is full; nothing was changed",
			"free some space on the file system of the state directory and try again")
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return e(muster.ReasonStoreUnusable, "the database is locked by another program; nothing was changed",
			"find it with `fuser -v muster.db` in the state directory, end it, and try again")
	case sqlite3.SQLITE_READONLY:
		return e(muster.ReasonStoreUnusable, "the database is read-only; nothing was changed",
			"check that the state directory is owned by this user and its file system is mounted read-write")
	case sqlite3.SQLITE_IOERR:
		return e(muster.ReasonDiskFailing, "I/O error on the disk of the database",
			"look for disk errors with dmesg; restart the server when the disk is well")
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return corrupt("the store", err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return e(muster.ReasonStoreUnusable, "the database cannot be opened",
			"check that the state directory exists, is owned by this user, and has space left")
	case sqlite3.SQLITE_NOMEM:
		return e(muster.ReasonMemoryShort, "out of memory for the database; nothing was changed",
			"give the server more memory and try again")
	case sqlite3.SQLITE_CONSTRAINT:
		return explainConstraint(err)
	}
	return defect("database error").Wrap(err)
}

// explainConstraint says which rule a change would have broken. The code
// checks most of them first; the database is the last line.
func explainConstraint(err error) *muster.Error {
	e := func(why muster.Reason, message, hint string) *muster.Error {
		return muster.Errorf(muster.EConflict, "%s", message).Because(why).WithHint("%s", hint).Wrap(err)
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "clusters.project, clusters.name"):
		return e(muster.ReasonNameTaken, "the project has a cluster of that name", "choose another name, or delete the other cluster first")
	case strings.Contains(text, "volumes.project, volumes.name"):
		return e(muster.ReasonNameTaken, "the project has a volume of that name", "choose another name, or delete the other volume first")
	case strings.Contains(text, "volumes.cluster, volumes.kind"):
		return e(muster.ReasonVolumeInUse, "the cluster has such a volume already", "a cluster has one home")
	case strings.Contains(text, "clusters.network_index"):
		return e(muster.ReasonPlanStale, "another cluster has that network", "take the next free network")
	case strings.Contains(text, "nodes.machine"), strings.Contains(text, "machines.cluster, machines.node"):
		return e(muster.ReasonPlanStale, "the machine or the node is taken already", "plan again with the present machines")
	case strings.Contains(text, "users.uid"):
		return e(muster.ReasonUIDTaken, "another user has that UID", "leave the UID out to get a free one")
	case strings.Contains(text, "append-only"):
		return e(muster.ReasonImmutable, "the audit is append-only", "add a line that corrects the other")
	}
	return e(muster.ReasonConflict, "the change violates a database constraint", "this is a bug in Muster: please report it with the server's log")
}

// corrupt says that stored bytes are not what was written.
func corrupt(what string, err error) *muster.Error {
	return muster.Errorf(muster.ECorrupt, "%s is damaged on the disk", what).Because(muster.ReasonStoreDamaged).
		WithHint("stop the server, keep muster.db and muster.db-wal aside, and restore a backup: `muster restore FILE --replace`; without one `muster adopt` shows what can be taken up of the clusters that run").
		Wrap(err)
}

// fatal reports whether err may have rolled back the whole transaction.
func fatal(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		return false
	}
	return true
}

func defect(format string, args ...any) *muster.Error {
	return muster.Errorf(muster.EInternal, "%s", fmt.Sprintf(format, args...)).
		WithHint("this is a bug in Muster: please report it with the server's log")
}
