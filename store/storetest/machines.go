package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

func events(t testing.TB, db *store.DB, who muster.Actor, id muster.MachineID, limit int) (list []muster.MachineEvent) {
	t.Helper()
	view(t, db, who, func(tx *store.Tx) (err error) { list, _, err = tx.MachineEvents(id, 0, limit); return err })
	return list
}

// testMachineHistory: every change of a machine that matters is in its history,
// written with the change; whose cluster it was is hidden from strangers.
func testMachineHistory(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	addPeople(t, db)
	Free(t, db, "m1", "m2")
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return Place(tx, c, "m1") })
	change := func(f func(m *muster.Machine), text string) {
		t.Helper()
		update(t, db, root(), func(tx *store.Tx) error {
			m, err := tx.Machine("m1")
			if err != nil {
				return err
			}
			f(&m)
			return tx.PutMachine(m, text)
		})
	}
	change(func(m *muster.Machine) { m.Intent, m.IntentBy = muster.IntentTest, "root" }, "test asked: it is odd")
	change(func(m *muster.Machine) { m.Note = "loud fan" }, "note: loud fan")
	change(func(m *muster.Machine) { m.Phase = muster.MachineActive }, "")
	// It fails: cut off, suspect, away from its node.
	update(t, db, muster.System(), func(tx *store.Tx) error {
		n, err := tx.Node(c.ID, "n01")
		if err != nil {
			return err
		}
		n.Phase = muster.NodeFencing
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		n.Phase, n.Machine = muster.NodeFenced, ""
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		m, err := tx.Machine("m1")
		if err != nil {
			return err
		}
		m.Phase, m.Cluster, m.Node, m.Faults = muster.MachineSuspect, "", "", []muster.Fault{{At: clock.Now(), Kind: muster.FaultLost, Cluster: c.ID}}
		if err := tx.PutMachine(m, "silent, and its probe failed"); err != nil {
			return err
		}
		return tx.PutFence(muster.FenceRecord{Machine: "m1", At: clock.Now(), Proven: true, Steps: []muster.CleanStep{{What: "port", Check: "down", OK: true}}}, c.ID, "n01")
	})
	change(func(m *muster.Machine) { m.Phase = muster.MachineTesting }, "")
	change(func(m *muster.Machine) {
		m.Phase, m.LastTest = muster.MachineCleaning, &muster.TestRecord{Machine: "m1", At: clock.Now(), Passed: true}
	}, "")
	change(func(m *muster.Machine) {
		m.Phase, m.LastClean = muster.MachineFree, &muster.CleanRecord{Machine: "m1", At: clock.Now(), Verified: true}
	}, "")
	brief := func(who muster.Actor, from muster.MachineID) (out []string) {
		for _, e := range events(t, db, who, from, 0) {
			if e.Machine != from || e.At.IsZero() {
				t.Errorf("event %+v", e)
			}
			out = append(out, fmt.Sprintf("%s %v %s|%s", e.Kind, e.Cluster == c.ID, e.Node, e.Text))
		}
		return out
	}
	want := []string{
		"clean false |verified in 0.0s", "test false |passed in 0.0s", "fence true n01|cut off, proven",
		"cluster true n01|ceased to serve", "fault true n01|silent, and its probe failed",
		"note false |loud fan", "intent false |test asked: it is odd", "cluster true n01|began to serve", "phase false |new",
	}
	same := func(what string, got []string) {
		t.Helper()
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%s:\ngot  %q\nwant %q", what, got, want)
		}
	}
	same("an administrator", brief(root(), "m1"))
	same("its user", brief(alice(), "m1"))
	same("a member of the project", brief(bob(), "m1"))
	for i, e := range want {
		if len(e) > 0 && (e[:5] == "fence" || e[:5] == "fault" || e[:7] == "cluster") {
			kind := map[byte]string{'e': "fence", 'a': "fault", 'l': "cluster"}[e[1]]
			want[i] = kind + " false |"
		}
	}
	same("a stranger", brief(carol(), "m1"))
	for _, e := range events(t, db, carol(), "m1", 0) {
		if e.Kind == store.EventFence && e.Steps != nil {
			t.Errorf("a stranger sees %+v", e)
		}
	}
	view(t, db, root(), func(tx *store.Tx) error {
		last, err := tx.LastMachine(c.ID, "n01")
		none, _ := tx.LastMachine(c.ID, "n02")
		if last != "m1" || none != "" {
			t.Errorf("the last machines are %q and %q", last, none)
		}
		lost, _ := tx.LostNodes(0)
		if len(lost) != 1 || lost[0].Name != "n01" {
			t.Errorf("lost nodes %+v", lost)
		}
		return err
	})
	for who, found := range map[string]int{"bob": 1, "carol": 0} {
		view(t, db, map[string]muster.Actor{"bob": bob(), "carol": carol()}[who], func(tx *store.Tx) error {
			lost, err := tx.LostNodes(5)
			if len(lost) != found {
				t.Errorf("%s sees %d lost nodes", who, len(lost))
			}
			return err
		})
	}
	wantCode(t, db.View(context.Background(), carol(), func(tx *store.Tx) error { _, err := tx.LastMachine(c.ID, "n01"); return err }), muster.ENotFound)
	for _, who := range []muster.Actor{alice(), carol(), {}} {
		wantCode(t, db.Update(context.Background(), who, func(tx *store.Tx) error {
			return tx.PutMachineEvent(muster.MachineEvent{Machine: "m1", Kind: store.EventNote, Text: "x"})
		}), muster.ENotFound)
	}
	// What is undone left no trace.
	before := len(events(t, db, root(), "m2", 0))
	_ = db.Update(context.Background(), root(), func(tx *store.Tx) error {
		if err := tx.PutMachineEvent(muster.MachineEvent{Machine: "m2", Kind: store.EventNote, Text: "never"}); err != nil {
			return err
		}
		return errUndo
	})
	if n := len(events(t, db, root(), "m2", 0)); n != before {
		t.Errorf("%d events, %d before", n, before)
	}
}

// testMachineHistoryBounds: the newest 500 of each machine, nothing older than
// two years, and no machine's history is cut for another's.
func testMachineHistoryBounds(t *testing.T, fresh freshFunc) {
	db, clock := fresh(t)
	add := func(id muster.MachineID, n int) {
		t.Helper()
		update(t, db, muster.System(), func(tx *store.Tx) error {
			for i := range n {
				if err := tx.PutMachineEvent(muster.MachineEvent{Machine: id, Kind: store.EventNote, Text: fmt.Sprint(i)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	add("quiet", 3)
	add("busy", 520)
	list := events(t, db, root(), "busy", 0)
	if len(list) != 500 || list[0].Text != "519" || list[499].Text != "20" {
		t.Fatalf("%d events, from %s to %s", len(list), list[0].Text, list[len(list)-1].Text)
	}
	if n := len(events(t, db, root(), "quiet", 0)); n != 3 {
		t.Errorf("the quiet one has %d events", n)
	}
	if list := events(t, db, alice(), "busy", 2); len(list) != 2 || list[0].Text != "519" {
		t.Errorf("the newest two are %+v", list)
	}
	clock.Add(2*365*24*time.Hour + time.Hour)
	add("other", 40) // each takes some of the old ones with it
	for _, id := range []muster.MachineID{"quiet", "busy"} {
		if n := len(events(t, db, root(), id, 0)); n != 0 {
			t.Errorf("%s still has %d events of two years ago", id, n)
		}
	}
	add("busy", 1)
	if list := events(t, db, root(), "busy", 0); len(list) != 1 {
		t.Errorf("%d events after all were too old", len(list))
	}
}
