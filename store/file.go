package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/lockfile"
)

// lockFile keeps a second server away from the same state directory. The lock
// ends with the process, however that ends.
func lockFile(ctx context.Context, path string) (*lockfile.Lock, error) {
	l, err := lockfile.Take(ctx, path)
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held):
		return nil, muster.Errorf(muster.EUnavailable, "another server has this state directory open").Because(muster.ReasonServerRunning).
			WithHint("stop it (`fuser -v %s` shows it), or use another state directory", path).Wrap(err)
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, explainFile(err)
	}
	return l, nil
}

// prepareFile makes the database file with tight permissions if there is none,
// and reports whether the last process left without closing it: then its log is
// still there. It refuses files that are not whole, before SQLite would take
// an emptied file for a new one.
func prepareFile(path string) (unclean bool, size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, 0, explainFile(err)
	}
	// SQLite has no lock on the file yet, so closing it drops none.
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, 0, explainFile(err)
	}
	if !info.Mode().IsRegular() {
		return false, 0, muster.Errorf(muster.EInvalid, "%s is not a file", path).Because(muster.ReasonBadValue).WithHint("give a path below the state directory")
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return false, 0, muster.Errorf(muster.EInvalid, "the database is readable by others: %s has mode %04o", path, mode).Because(muster.ReasonInsecureFile).
			WithHint("chmod 600 %s; if others use this computer, make new tokens too", path)
	}
	wal, err := os.Stat(path + "-wal")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, 0, explainFile(err)
	}
	unclean = err == nil && wal.Size() > 0
	if info.Size() == 0 {
		if unclean {
			return true, 0, corrupt("the store", errors.New("the file is empty but its log is not"))
		}
		return false, 0, nil
	}
	return unclean, info.Size(), checkHeader(f, info.Size(), unclean)
}

// checkHeader compares the length that the header promises with the file's.
// While there is a log, the last pages may be only there.
func checkHeader(f *os.File, size int64, unclean bool) error {
	head := make([]byte, 100)
	if _, err := io.ReadFull(f, head); err != nil {
		return corrupt("the store", fmt.Errorf("header: %w", err))
	}
	if !strings.HasPrefix(string(head), "SQLite format 3\x00") {
		return corrupt("the store", errors.New("not an SQLite file"))
	}
	page := int64(head[16])<<8 | int64(head[17])
	if page == 1 {
		page = 65536
	}
	pages := int64(head[28])<<24 | int64(head[29])<<16 | int64(head[30])<<8 | int64(head[31])
	if !unclean && size < page*pages {
		return corrupt("the store", fmt.Errorf("cut short: %d bytes of %d", size, page*pages))
	}
	return nil
}

func explainFile(err error) error {
	e := muster.Errorf(muster.EUnavailable, "the database cannot be opened").Because(muster.ReasonStoreUnusable).Wrap(err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return e.WithHint("free some space on the file system of the state directory and try again")
	case errors.Is(err, syscall.EROFS):
		return e.WithHint("the file system of the state directory is mounted read-only: mount it read-write")
	case errors.Is(err, os.ErrPermission):
		return e.WithHint("the state directory belongs to another user: run the server as that user")
	case errors.Is(err, os.ErrNotExist):
		return e.WithHint("make the state directory first, with mode 0700")
	}
	return e.WithHint("look for disk errors with dmesg")
}

// quickCheck reads the structure of the whole file.
func quickCheck(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `PRAGMA quick_check(5)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var faults []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return err
		}
		if line != "ok" {
			faults = append(faults, line)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(faults) > 0 {
		return corrupt("the store", errors.New(strings.Join(faults, "; ")))
	}
	return nil
}
