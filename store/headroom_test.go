package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// fill writes until not a byte more fits.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filling"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); ; {
		if _, err := f.Write(block); errors.Is(err, unix.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "more"), make([]byte, 1<<16), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
}

func openRoomy(t *testing.T, dir string, log *slog.Logger) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(dir, "muster.db"), store.Options{Headroom: store.Headroom, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// turn moves a cluster to and fro between two phases.
func turn(db *store.DB, id muster.ClusterID, phase muster.ClusterPhase, text string) error {
	return db.Update(context.Background(), muster.System(), func(tx *store.Tx) error {
		c, err := tx.Cluster(id)
		if err != nil {
			return err
		}
		c.Phase = phase
		return tx.PutCluster(c, text)
	})
}

// TestHeadroom fills the disk of a store completely. Changes of phase commit
// all the same: hundreds of them, after a restart on the full disk, too.
func TestHeadroom(t *testing.T) { runInMountNamespace(t, "headroom") }

func useHeadroom(t *testing.T, dir string) {
	smallDisk(t, dir, "size=40m,mode=0700")
	db := openRoomy(t, dir, nil)
	c := storetest.NewCluster("cfd", "alice", "sea")
	if err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return tx.PutCluster(c, "made") }); err != nil {
		t.Fatal(err)
	}
	fill(t, dir)
	// Long lines: more is written than SQLite keeps in its log, so the log has
	// to begin anew on the full disk.
	step := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			phase := muster.ClusterValidating
			if i%2 == 1 {
				phase = muster.ClusterBuilding
			}
			if err := turn(db, c.ID, phase, fmt.Sprint(i, strings.Repeat(" on a full disk", 20))); err != nil {
				t.Fatalf("change %d: %v (%v)", i, err, errors.Unwrap(err))
			}
		}
	}
	step(0, 600)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	db = openRoomy(t, dir, slog.New(slog.NewTextHandler(&log, nil)))
	defer db.Close()
	step(600, 1000)
	got, err := 0, error(nil)
	err = db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		list, err := tx.Audits(store.AuditFilter{Cluster: c.ID})
		got = len(list)
		return err
	})
	if err != nil || got < 1000 {
		t.Errorf("%d lines of the audit, %v", got, err)
	}
	t.Logf("log: %s", log.String())
}

// TestHeadroomComesBack uses up the free pages while there is room on the
// disk: they are there again.
func TestHeadroomComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openRoomy(t, dir, nil)
	free := func() (n int) {
		other := raw(t, dir)
		defer other.Close()
		if err := other.QueryRow(`PRAGMA freelist_count`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := free()
	if before*4096 < 4<<20 {
		t.Fatalf("only %d free pages", before)
	}
	for i := range 600 {
		err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
			return tx.Note(muster.AuditImage, fmt.Sprint(i), "", strings.Repeat("x", 12000))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if after := free(); after*4096 < 3<<20/2 {
		t.Errorf("%d free pages of %d", after, before)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "muster.db-wal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log is left: %v", err)
	}
}
