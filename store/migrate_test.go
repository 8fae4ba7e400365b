package store_test

import (
	"database/sql"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/pressly/goose/v3"
)

// older makes a store of an older schema in dir, as a program of that time left it.
func older(t *testing.T, dir string, version int64) *sql.DB {
	t.Helper()
	file := filepath.Join(dir, "muster.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := raw(t, dir)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations"), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return db
}

// A store that a program of another time filled is refused before anything in it is
// changed: its records would be misread.
func TestDocumentsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		doc, names string
	}{
		"none":  {`{"ID":"c-old","Name":"old","Owner":"alice","Project":"sea"}`, "cluster/1"},
		"newer": {`{"document":"cluster/2","content":{"identity":"c-old"}}`, `"cluster/2"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			old := older(t, dir, 4)
			_, err := old.Exec(`INSERT INTO clusters (id, owner, project, name, phase, image, created, rev, sum, doc) VALUES ('c-old', 'alice', 'sea', 'old', 'ready', '', 1, 1, ?, ?)`,
				crc32.Checksum([]byte(c.doc), crc32.MakeTable(crc32.Castagnoli)), c.doc)
			if err != nil {
				t.Fatal(err)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			_, err = reopen(dir)
			wantCode(t, err, muster.EConflict)
			var e *muster.Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, "table clusters of "+dir) || !strings.Contains(e.Message, c.names) || e.Reason != muster.ReasonOtherVersion || e.Hint == "" {
				t.Errorf("it is refused with %v", err)
			}
			var version int
			if err := raw(t, dir).QueryRow(`SELECT max(version_id) FROM goose_db_version`).Scan(&version); err != nil || version != 4 {
				t.Errorf("its schema has version %d now, %v", version, err)
			}
		})
	}
}

// A store without records is brought up to now.
func TestOlderStoreWithoutRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := older(t, dir, 4).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
