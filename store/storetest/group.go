package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// testGroup lets many Updates meet: some fail, some panic, some end their
// goroutine. Exactly the changes of the others must be there.
func testGroup(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	const workers, rounds = 16, 20
	var wg sync.WaitGroup
	for w := range workers {
		for r := range rounds {
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer func() { _ = recover() }()
				err := db.Update(context.Background(), root(), func(tx *store.Tx) error {
					if err := tx.Note(muster.AuditImage, fmt.Sprintf("%d/%d", w, r), "", "x"); err != nil {
						return err
					}
					switch r % 5 {
					case 1:
						return errUndo
					case 2:
						panic("a defect")
					case 3:
						runtime.Goexit()
					}
					return nil
				})
				if r%5 == 1 && !errors.Is(errors.Unwrap(err), errUndo) && !errors.Is(err, errUndo) {
					t.Errorf("a failing function gives %v", err)
				}
				if r%5 == 0 && err != nil {
					t.Errorf("a good function gives %v", err)
				}
			}()
		}
	}
	wg.Wait()
	seen := map[string]int{}
	for _, a := range audits(t, db, root(), store.AuditFilter{}) {
		seen[a.Object]++
	}
	for w := range workers {
		for r := range rounds {
			want := 0
			if r%5 == 0 || r%5 == 4 {
				want = 1
			}
			if got := seen[fmt.Sprintf("%d/%d", w, r)]; got != want {
				t.Errorf("worker %d round %d left %d lines, want %d", w, r, got, want)
			}
		}
	}
	s := db.Stats()
	if s.Updates != workers*rounds*2/5 || s.Commits > s.Updates || s.Size == 0 || s.LastError != nil {
		t.Errorf("stats %+v", s)
	}
	t.Logf("%d updates in %d commits, at most %d together", s.Updates, s.Commits, s.Largest)
}

func testPanic(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	func() {
		defer func() {
			if r := recover(); r != "a defect" {
				t.Errorf("the panic arrives as %v", r)
			}
		}()
		_ = db.Update(context.Background(), root(), func(tx *store.Tx) error { panic("a defect") })
	}()
	func() {
		defer func() { _ = recover() }()
		_ = db.View(context.Background(), root(), func(tx *store.Tx) error { panic("a defect") })
	}()
	update(t, db, root(), func(tx *store.Tx) error { return tx.Note(muster.AuditImage, "x", "", "x") })
	view(t, db, root(), func(tx *store.Tx) error { return nil })
}

func testMisuse(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	ctx, cancel := context.WithCancel(context.Background())
	var kept *store.Tx
	view(t, db, root(), func(tx *store.Tx) error {
		kept = tx
		wantCode(t, tx.Note(muster.AuditImage, "x", "", "x"), muster.EInternal)
		wantCode(t, tx.PutCluster(NewCluster("a", "alice", "sea"), ""), muster.EInternal)
		wantCode(t, tx.PutUser(muster.User{Name: "x", UID: 3000}, ""), muster.EInternal)
		return nil
	})
	_, err := kept.Users()
	wantCode(t, err, muster.EInternal)
	cancel()
	wantCode(t, db.View(ctx, root(), func(tx *store.Tx) error { return nil }), muster.ETimeout)
	err = db.Update(ctx, root(), func(tx *store.Tx) error { return nil })
	wantCode(t, err, muster.ETimeout)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is lost: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	wantCode(t, db.View(context.Background(), root(), func(tx *store.Tx) error { return nil }), muster.EUnavailable)
	wantCode(t, db.Update(context.Background(), root(), func(tx *store.Tx) error { return nil }), muster.EUnavailable)
}

// testText gives the store texts that databases and JSON like to change.
func testText(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	for _, bad := range []string{"a\x00b", "\xff\xfe", "ok\xc3"} {
		for what, spoil := range map[string]func(*muster.Cluster){
			"name": func(c *muster.Cluster) { c.Name = bad }, "project": func(c *muster.Cluster) { c.Project = bad },
			"owner": func(c *muster.Cluster) { c.Owner = bad }, "ID": func(c *muster.Cluster) { c.ID = muster.ClusterID(bad) },
		} {
			c := NewCluster("cfd", "alice", "sea")
			spoil(&c)
			err := db.Update(context.Background(), root(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
			if muster.CodeOf(err) != muster.EInvalid {
				t.Errorf("%s %q: %v", what, bad, err)
			}
		}
		update(t, db, root(), func(tx *store.Tx) error { return tx.Note(muster.AuditImage, "x", "", bad+" end") })
	}
	c := NewCluster("größe ☂", "alice", "sea")
	c.Conditions = []muster.Condition{{Text: "a\x00b \xff <&>"}}
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "it's \"quoted\"; -- 🙂") })
	view(t, db, alice(), func(tx *store.Tx) error { _, err := tx.FindCluster("größe ☂"); return err })
	for _, a := range audits(t, db, root(), store.AuditFilter{Kind: muster.AuditImage}) {
		if len(a.Text) < 6 || a.Text[len(a.Text)-4:] != " end" {
			t.Errorf("a remark became %q", a.Text)
		}
	}
}

// testReopen: everything is there after closing and opening again.
func testReopen(t *testing.T, open Open) {
	dir := t.TempDir()
	db := open(t, dir, store.Options{})
	Free(t, db, "m1")
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return Place(tx, c, "m1") })
	before := audits(t, db, root(), store.AuditFilter{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir, store.Options{})
	view(t, db, alice(), func(tx *store.Tx) error {
		m, err := tx.Machine("m1")
		if m.Cluster != c.ID {
			t.Errorf("machine %+v", m)
		}
		return err
	})
	if after := audits(t, db, root(), store.AuditFilter{}); len(after) != len(before) {
		t.Errorf("%d audit lines became %d", len(before), len(after))
	}
}

// testCrash stops at every point of a commit: before the commit nothing of the
// Update is there after opening again, after it everything is.
func testCrash(t *testing.T, open Open) {
	for _, point := range store.Points() {
		dir := t.TempDir()
		armed := false
		boom := errors.New("power cut")
		db := open(t, dir, store.Options{Fault: func(p string) error {
			if armed && p == point {
				return boom
			}
			return nil
		}})
		Free(t, db, "m1")
		armed = true
		c := NewCluster("cfd", "alice", "sea")
		err := db.Update(context.Background(), alice(), func(tx *store.Tx) error { return Place(tx, c, "m1") })
		if !errors.Is(err, boom) {
			t.Errorf("%s: %v", point, err)
		}
		wantCode(t, db.View(context.Background(), root(), func(tx *store.Tx) error { return nil }), muster.EUnavailable)
		_ = db.Close()
		db = open(t, dir, store.Options{})
		durable := point == store.PointAfterCommit || point == store.PointPublished
		view(t, db, muster.System(), func(tx *store.Tx) error {
			m, err := tx.Machine("m1")
			if (m.Phase == muster.MachineAllocated) != durable {
				t.Errorf("after a crash at %s the machine is %s", point, m.Phase)
			}
			if _, err := tx.Cluster(c.ID); (err == nil) != durable {
				t.Errorf("after a crash at %s: %v", point, err)
			}
			return err
		})
		if n := len(audits(t, db, root(), store.AuditFilter{Cluster: c.ID})); (n == 3) != durable || (n == 0) == durable {
			t.Errorf("after a crash at %s there are %d lines", point, n)
		}
		_ = db.Close()
	}
}
