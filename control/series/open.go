package series

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

const (
	// application marks our files, so that another program's are left alone.
	application = 0x6d737472
	schema      = 1
	pageSize    = 4096
)

var errForeign = errors.New("it is not a file of samples of this version")

// file is the database while it is open.
type file struct {
	write *sql.DB // one connection
	read  *sql.DB
	owner map[string]int64
}

func source(path string, pragmas ...string) string {
	q := url.Values{}
	for _, p := range append([]string{"busy_timeout(5000)", "cell_size_check(1)"}, pragmas...) {
		q.Add("_pragma", p)
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}
	return u.String()
}

// openFile opens the file, makes it if there is none. errForeign or an error of
// SQLite says that the file is not good.
func openFile(ctx context.Context, path string, bound int64) (*file, error) {
	f := &file{owner: map[string]int64{}}
	var err error
	if made, cerr := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); cerr != nil {
		return nil, cerr
	} else if cerr := made.Close(); cerr != nil {
		return nil, cerr
	}
	// A lost tail after a power cut is fine, a damaged file is not: NORMAL.
	f.write, err = sql.Open("sqlite", source(path, fmt.Sprintf("page_size(%d)", pageSize), "auto_vacuum(2)", "journal_mode(WAL)",
		"synchronous(NORMAL)", "journal_size_limit(8388608)", fmt.Sprintf("max_page_count(%d)", max(64, bound/pageSize))))
	if err != nil {
		return nil, err
	}
	f.write.SetMaxOpenConns(1)
	if err := f.prepare(ctx); err != nil {
		_ = f.write.Close()
		return nil, err
	}
	if f.read, err = sql.Open("sqlite", source(path, "query_only(1)")); err != nil {
		_ = f.write.Close()
		return nil, err
	}
	f.read.SetMaxOpenConns(4)
	return f, nil
}

func (f *file) prepare(ctx context.Context) error {
	var app, version, tables int64
	err := errors.Join(
		f.write.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&app),
		f.write.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version),
		f.write.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master`).Scan(&tables))
	if err != nil {
		return err
	}
	if tables > 0 || app != 0 || version != 0 {
		if app != application || version != schema {
			return errForeign
		}
		return f.loadOwners(ctx)
	}
	_, err = f.write.ExecContext(ctx, fmt.Sprintf(`
		BEGIN IMMEDIATE;
		CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
		CREATE TABLE block (
			id     INTEGER PRIMARY KEY,
			owner  INTEGER NOT NULL,
			level  INTEGER NOT NULL,
			at     INTEGER NOT NULL,
			rolled INTEGER NOT NULL,
			data   BLOB NOT NULL
		) STRICT;
		CREATE INDEX block_owner ON block (owner, level, at);
		CREATE INDEX block_age   ON block (level, at);
		CREATE INDEX block_todo  ON block (level, at) WHERE rolled = 0;
		PRAGMA application_id = %d;
		PRAGMA user_version = %d;
		COMMIT`, application, schema))
	return err
}

func (f *file) loadOwners(ctx context.Context) error {
	rows, err := f.write.QueryContext(ctx, `SELECT id, name FROM owner`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return err
		}
		f.owner[name] = id
	}
	return rows.Err()
}

func (f *file) close() error {
	_, _ = f.write.ExecContext(context.Background(), `PRAGMA wal_checkpoint(TRUNCATE)`) // else the next opening does it
	return errors.Join(f.read.Close(), f.write.Close())
}

// isDamage reports whether an error says that the file itself is no good.
func isDamage(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		code := e.Code() & 0xff
		return code == sqlitelib.SQLITE_CORRUPT || code == sqlitelib.SQLITE_NOTADB
	}
	return errors.Is(err, errForeign)
}

func isFull(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlitelib.SQLITE_FULL
}

// setAside moves a file out of the way. One such file is kept.
func setAside(path string, now time.Time) (string, error) {
	aside := path + ".aside"
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(aside + end)
	}
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	_ = os.Chtimes(aside, now, now)
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+end, aside+end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	return aside, nil
}
