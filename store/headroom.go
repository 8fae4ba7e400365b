package store

import (
	"errors"
	"os"
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Headroom is a good value of Options.Headroom for a server: thousands of
// changes of phase. It is larger than the log gets before SQLite folds it into
// the file (1000 pages).
const Headroom = 6 << 20

// Every so many commits the store looks whether its headroom is still there.
const headroomEvery = 256

// fewFiles is when a file system counts as having no room for files.
const fewFiles = 256

// headroom keeps room inside the files of the store, so that changes still
// commit when others have filled the disk: free pages in the database file and
// a log file that has grown already and is written again from its beginning.
type headroom struct {
	commits int       // since the last look
	warned  time.Time // when failing to make it was last logged
}

// openHeadroom makes the headroom while nobody reads yet. A disk without room
// for it is no error: the store works as long as the disk takes its changes.
func (db *DB) openHeadroom() {
	if db.opts.Headroom <= 0 {
		return
	}
	// What the last process left in the log goes into the file, and the log
	// begins anew: else the first changes would have to make it longer.
	if _, err := db.writer.exec(`PRAGMA wal_checkpoint(RESTART)`); err != nil {
		db.headroomFailed(err)
	}
	db.makeHeadroom()
}

// keepHeadroom is called after commits, with wmu held and no group open.
func (db *DB) keepHeadroom() {
	if db.opts.Headroom <= 0 {
		return
	}
	db.headroom.commits++
	if db.headroom.commits < headroomEvery {
		return
	}
	db.headroom.commits = 0
	// On a disk that is nearly full, what is left of it serves best as it is.
	if db.free() > 4*db.opts.Headroom {
		db.makeHeadroom()
	}
}

func (db *DB) makeHeadroom() {
	enough, err := db.hasHeadroom()
	if err == nil && !enough {
		err = db.inflate()
	}
	if err != nil {
		db.headroomFailed(err)
	}
}

func (db *DB) headroomFailed(err error) {
	if time.Since(db.headroom.warned) < time.Minute {
		return
	}
	db.headroom.warned = time.Now()
	db.log.Warn("reserving database headroom failed", "error", err)
}

func (db *DB) hasHeadroom() (bool, error) {
	if info, err := os.Stat(db.path + "-wal"); err != nil || info.Size() < db.opts.Headroom {
		return false, nil
	}
	rows, err := db.writer.query(`SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size`)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var free int64
	for rows.Next() {
		if err := rows.Scan(&free); err != nil {
			return false, err
		}
	}
	return free >= db.opts.Headroom/2, rows.Err()
}

// inflate writes a large row and deletes it in the same transaction. Its pages
// go through the log into the file (secure_delete sees to it that also freed
// pages are written) and are free afterwards.
func (db *DB) inflate() error {
	if _, err := db.writer.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	for _, step := range []struct {
		text string
		args []any
	}{
		{`INSERT INTO meta (key, owner, project, value) VALUES ('headroom', '', '', hex(zeroblob(?)))`, []any{db.opts.Headroom / 2}},
		{`DELETE FROM meta WHERE key = 'headroom'`, nil},
		{`COMMIT`, nil},
	} {
		if _, err := db.writer.exec(step.text, step.args...); err != nil {
			_, _ = db.writer.exec(`ROLLBACK`) // fails when SQLite did it already
			return err
		}
	}
	// Into the file now, as far as those who read permit: a later moment may
	// find the disk full.
	_, err := db.writer.exec(`PRAGMA wal_checkpoint(PASSIVE)`)
	return err
}

// relieve folds the log into the file after a change found no room, so that
// the next one can write the log from its beginning.
func (db *DB) relieve(err error) {
	var se *sqlite.Error
	if errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_FULL {
		_, _ = db.writer.exec(`PRAGMA wal_checkpoint(PASSIVE)`) // only ever helps
	}
}

// keepLog lets the log file outlive Close. On a full disk a new one could not
// be made by the next Open.
func (db *DB) keepLog() error {
	if _, err := db.writer.exec(`PRAGMA journal_size_limit = -1`); err != nil {
		return err
	}
	return db.writer.c.Raw(func(c any) error {
		if f, ok := c.(interface {
			FileControlPersistWAL(db string, mode int) (int, error)
		}); ok {
			_, err := f.FileControlPersistWAL("main", 1)
			return err
		}
		return nil
	})
}

// free is how many bytes the file system of the store has left for us: none if
// it takes no more files.
func (db *DB) free() int64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(db.path, &fs); err != nil {
		return 0
	}
	if fs.Files > 0 && fs.Ffree < fewFiles { // some file systems do not count files
		return 0
	}
	return int64(fs.Bavail) * fs.Bsize
}
