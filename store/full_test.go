package store

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// TestSwallowedError runs a function that goes on after the disk was full.
// SQLite has undone the transaction by then, and each further statement would
// be committed by itself: none may be.
func TestSwallowedError(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, err := Open(ctx, filepath.Join(t.TempDir(), "muster.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	limit := func(pages string) {
		var n int
		if err := db.writer.c.QueryRowContext(ctx, `PRAGMA max_page_count = `+pages).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	limit("1") // SQLite takes the present size
	failed := 0
	err = db.Update(ctx, muster.System(), func(tx *Tx) error {
		for range 20 {
			if tx.Note(muster.AuditImage, "x", "", strings.Repeat("x", 5000)) != nil {
				failed++
			}
		}
		limit("1000000") // room again, and it still may not write
		if tx.Note(muster.AuditImage, "y", "", "y") == nil {
			t.Error("it goes on writing")
		}
		return nil
	})
	if muster.CodeOf(err) != muster.EUnavailable || failed == 0 {
		t.Errorf("%d failed: %v", failed, err)
	}
	err = db.Update(ctx, muster.System(), func(tx *Tx) error {
		list, err := tx.Audits(AuditFilter{})
		if len(list) != 0 {
			t.Errorf("%d lines were invented", len(list))
		}
		return err
	})
	if err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestTold: a function that failed by itself is told when the commit of its
// group failed, because what it saw has not happened.
func TestTold(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	armed := make(chan struct{})
	db, err := Open(ctx, filepath.Join(t.TempDir(), "muster.db"), Options{Fault: func(p string) error {
		select {
		case <-armed:
			if p == PointBeforeCommit {
				return context.DeadlineExceeded
			}
		default:
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	close(armed)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		first <- db.Update(ctx, muster.System(), func(tx *Tx) error {
			go func() {
				second <- db.Update(ctx, muster.System(), func(tx *Tx) error {
					list, err := tx.Audits(AuditFilter{})
					if err == nil && len(list) == 1 {
						return muster.Errorf(muster.EConflict, "it is there already")
					}
					return err
				})
			}()
			for db.waiting.Load() == 0 { // until the other one waits to join the group
				runtime.Gosched()
			}
			return tx.Note(muster.AuditImage, "x", "", "x")
		})
	}()
	for _, err := range []error{<-first, <-second} {
		if muster.CodeOf(err) != muster.EUnavailable {
			t.Errorf("told %v", err)
		}
	}
}
