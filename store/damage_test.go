package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

func wantCode(t testing.TB, err error, code muster.Code) {
	t.Helper()
	var e *muster.Error
	if muster.CodeOf(err) != code || !errors.As(err, &e) || e.Hint == "" || e.Message == "" {
		t.Fatalf("got %v (%+v), want code %q and a hint", err, e, code)
	}
}

func reopen(dir string) (*store.DB, error) {
	return store.Open(context.Background(), filepath.Join(dir, "muster.db"), store.Options{BusyTimeout: 50 * time.Millisecond})
}

// raw opens the file behind the store's back.
func raw(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "muster.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func note(db *store.DB, object string) error {
	return db.Update(context.Background(), muster.System(), func(tx *store.Tx) error { return tx.Note(muster.AuditImage, object, "", "x") })
}

func notes(t testing.TB, db *store.DB) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	err := db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Audits(store.AuditFilter{Kind: muster.AuditImage})
		for _, a := range list {
			if seen[a.Object] {
				t.Errorf("%s is there twice", a.Object)
			}
			seen[a.Object] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, store.Options{BusyTimeout: 250 * time.Millisecond})
	_, err := reopen(dir)
	wantCode(t, err, muster.EUnavailable) // a second server

	c, err := raw(t, dir).Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ExecContext(context.Background(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	err = note(db, "a")
	wantCode(t, err, muster.EUnavailable)
	if muster.ReasonOf(err) != muster.ReasonStoreUnusable {
		t.Errorf("the message is %v", err)
	}
	// Many that wait are told together, not one after the other.
	start := time.Now()
	var wg sync.WaitGroup
	for range 400 {
		wg.Go(func() {
			if err := note(db, "a"); muster.CodeOf(err) != muster.EUnavailable {
				t.Errorf("while locked: %v", err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(start); took > time.Minute { // one after the other: 100 s
		t.Errorf("400 refusals took %v", took)
	}
	if len(notes(t, db)) != 0 { // reading goes on
		t.Error("something was written")
	}
	if s := db.Stats(); s.LastError == nil || s.LastErrorAt.IsZero() {
		t.Errorf("stats %+v", s)
	}
	if _, err := c.ExecContext(context.Background(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := note(db, "a"); err != nil {
		t.Errorf("after the lock is gone: %v", err)
	}
	_ = c.Close()
}

func TestRefusedFiles(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		code  muster.Code
		spoil func(t *testing.T, file string) error
	}{
		"others can read it": {muster.EInvalid, func(_ *testing.T, f string) error { return os.Chmod(f, 0o644) }},
		"cut short":          {muster.ECorrupt, func(_ *testing.T, f string) error { return os.Truncate(f, 20000) }},
		"cut to a stub":      {muster.ECorrupt, func(_ *testing.T, f string) error { return os.Truncate(f, 50) }},
		"not SQLite":         {muster.ECorrupt, func(_ *testing.T, f string) error { return os.WriteFile(f, []byte(strings.Repeat("x", 8192)), 0o600) }},
		"emptied, with a log": {muster.ECorrupt, func(_ *testing.T, f string) error {
			return errors.Join(os.Truncate(f, 0), os.WriteFile(f+"-wal", []byte("x"), 0o600))
		}},
		"a directory":        {muster.EUnavailable, func(_ *testing.T, f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) }},
		"a page overwritten": {muster.ECorrupt, func(_ *testing.T, f string) error { return scribble(f, 4096*2, strings.Repeat("\xff", 4096)) }},
		"a newer schema": {muster.EConflict, func(t *testing.T, f string) error {
			db := raw(t, filepath.Dir(f))
			defer db.Close()
			_, err := db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := open(t, dir, store.Options{})
			storetest.Free(t, db, "m1", "m2", "m3")
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if err := x.spoil(t, filepath.Join(dir, "muster.db")); err != nil {
				t.Fatal(err)
			}
			for range 2 { // refusing changes nothing
				_, err := reopen(dir)
				wantCode(t, err, x.code)
			}
		})
	}
	_, err := reopen("/nonexistent/dir")
	wantCode(t, err, muster.EUnavailable)
	for _, path := range []string{"", ":memory:"} {
		_, err := store.Open(context.Background(), path, store.Options{})
		wantCode(t, err, muster.EInvalid)
	}
}

func scribble(path string, at int64, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), at)
	return errors.Join(err, f.Close())
}

// TestChangedRecord changes one letter of a stored document, which SQLite
// cannot notice.
func TestChangedRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, store.Options{})
	storetest.Free(t, db, "m1", "m2")
	_ = db.Close()
	path := filepath.Join(dir, "muster.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), `"EPYC 9654"`)
	if at < 0 {
		t.Fatal("the document is not in the file")
	}
	if err := scribble(path, int64(at)+1, "X"); err != nil {
		t.Fatal(err)
	}
	if db, err = reopen(dir); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	damaged := 0
	_ = db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		for _, id := range []muster.MachineID{"m1", "m2"} {
			m, err := tx.Machine(id)
			switch {
			case muster.CodeOf(err) == muster.ECorrupt:
				damaged++
			case err != nil || m.Facts.Processor != "EPYC 9654":
				t.Errorf("%s is %q, %v", id, m.Facts.Processor, err)
			}
		}
		return nil
	})
	if damaged != 1 {
		t.Errorf("%d records are called damaged", damaged)
	}
	if s := db.Stats(); s.Size == 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestFlippedBytes flips bytes anywhere in the file. Whatever is read after
// that is what was written, or an error.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, store.Options{})
	var ids []muster.MachineID
	for i := range 30 {
		ids = append(ids, muster.MachineID(fmt.Sprintf("m%d", i)))
	}
	storetest.Free(t, db, ids...)
	want := map[muster.MachineID]muster.Machine{}
	_ = db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{})
		for _, m := range list {
			want[m.ID] = m
		}
		return err
	})
	_ = db.Close()
	good, err := os.ReadFile(filepath.Join(dir, "muster.db"))
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	refused, noticed, fine, missing := 0, 0, 0, 0
	for range 150 {
		bad := append([]byte(nil), good...)
		for range 1 + random.IntN(20) {
			bad[random.IntN(len(bad))] ^= byte(1 + random.IntN(255))
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "muster.db"), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := reopen(dir)
		if err != nil {
			var e *muster.Error
			if !errors.As(err, &e) || e.Hint == "" {
				t.Errorf("open: %v", err)
			}
			refused++
			continue
		}
		err = db.View(context.Background(), muster.System(), func(tx *store.Tx) error {
			list, err := tx.Machines(store.MachineFilter{})
			for _, m := range list {
				if !reflect.DeepEqual(m, want[m.ID]) {
					t.Errorf("machine %s was invented", m.ID)
				}
			}
			missing += len(want) - len(list)
			return err
		})
		if err == nil {
			fine++
		} else {
			missing -= len(want)
			noticed++
		}
		_ = db.Close()
	}
	t.Logf("refused at open %d, noticed when read %d, not touched %d, records not found %d", refused, noticed, fine, missing)
}

func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, store.Options{})
	for _, s := range []string{"a", "b"} {
		if err := note(db, s); err != nil {
			t.Fatal(err)
		}
	}
	behind := raw(t, dir)
	for _, q := range []string{
		`UPDATE audit SET text = 'forged'`, `DELETE FROM audit`, `DELETE FROM audit WHERE seq = 2`,
		`INSERT OR REPLACE INTO audit SELECT 1, at, 'forged', owner, project, cluster, kind, object, "from", "to", text FROM audit WHERE seq = 2`,
	} {
		if _, err := behind.Exec(q); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", q, err)
		}
	}
	if seen := notes(t, db); len(seen) != 2 {
		t.Errorf("the audit has %v", seen)
	}
}
