package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// A switch that was not reached: machines behind it are given last for a while, and a promise gets others at its
// time if there are enough. Where there are not it keeps its own.
func TestPromiseBehindASwitchThatIsDown(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 8)
	if _, err := b.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: described}); err != nil {
		t.Fatal(err)
	}
	leafOf := func(id muster.MachineID) string {
		if id <= "fake-04" {
			return "leaf1"
		}
		return "leaf2"
	}
	p := b.must("name: p; nodes: 3; walltime: 1h; start: +2h", muster.ClusterReserved)
	start := shown(t, b.Site, p.ID).StartAt
	// The leaf of the promise, and a machine there that it does not have.
	look := func() (leaf string, beside muster.MachineID) {
		t.Helper()
		got := shown(t, b.Site, p.ID)
		if !got.StartAt.Equal(start) || got.Promise == nil || got.Promise.Moved != 0 || len(got.Notices) != 0 {
			t.Fatalf("another time: %+v %+v", got.Promise, got.Notices)
		}
		has := map[muster.MachineID]bool{}
		for _, as := range got.Promise.Plan.Assign {
			if leaf != "" && leafOf(as.Machine) != leaf {
				t.Fatalf("in both leaves: %+v", got.Promise.Plan)
			}
			leaf, has[as.Machine] = leafOf(as.Machine), true
		}
		for i := range 8 {
			if id := muster.MachineID(fmt.Sprintf("fake-%02d", i+1)); leafOf(id) == leaf && !has[id] {
				beside = id
			}
		}
		return leaf, beside
	}
	was, beside := look()
	switchDown(t, b.Site, beside, b.clock.Now())
	b.promote(0)
	now, beside := look()
	if now == was {
		t.Fatalf("it stays behind %s", was)
	}
	tree, err := b.Control.SiteTopology(t.Context(), root())
	for _, s := range tree.Stands {
		if (s.NotReached != nil) != (s.Name == was) {
			t.Errorf("%s: %+v, %v", s.Name, s.NotReached, err)
		}
	}
	// Spread cannot be had now: that is said, and what ends it.
	wide, err := b.Control.CreateCluster(t.Context(), root(), yaml("name: wide; nodes: 2; head: shared; users: [alice]; placement: spread; walltime: 10m"))
	if err != nil || !slices.ContainsFunc(wide.Answer.Notices, func(n string) bool {
		return strings.Contains(n, "nothing behind "+was+" was reached") && strings.Contains(n, "(spread)") && strings.Contains(n, "has 0 of 4") && strings.Contains(n, "muster machine test fake-0")
	}) {
		t.Errorf("%q, %v", wide.Answer.Notices, err)
	}
	one := b.must("name: one; nodes: 1; walltime: 10m", muster.ClusterBuilding)
	if n := shown(t, b.Site, one.ID).Nodes[0]; leafOf(n.Machine) != now {
		t.Errorf("%s is given although others are free", n.Machine)
	}
	// Nothing is known any more against the first leaf.
	b.after(31 * time.Minute)
	switchDown(t, b.Site, beside, b.clock.Now())
	b.promote(0)
	if back, _ := look(); back != was {
		t.Errorf("it stays behind %s", back)
	}
	// Both are down: it keeps what it has.
	_, beside = look()
	switchDown(t, b.Site, beside, b.clock.Now())
	b.promote(0)
	if at, _ := look(); at != was {
		t.Errorf("it moved to %s", at)
	}
}

// switchDown has all machines behind the leaf of one be marked: nothing there was reached.
func switchDown(t *testing.T, s *controltest.Site, id muster.MachineID, at time.Time) {
	t.Helper()
	err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		machines, err := tx.Site()
		for _, m := range machines {
			if err == nil && (m.ID <= "fake-04") == (id <= "fake-04") {
				m.Conditions = append(slices.Clone(m.Conditions), muster.Condition{Code: muster.ConditionSwitchDown, Stand: map[bool]string{true: "leaf1", false: "leaf2"}[m.ID <= "fake-04"], Since: at, Text: "nothing behind it was reached"})
				err = tx.PutMachine(m, "")
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A node that left a switch gets no machine behind it for as long as that is held against others, and any after that:
// nobody else may stand there who could show that it is back.
func TestSpareBehindASwitchThatIsDown(t *testing.T) {
	t.Parallel()
	b := newBooked(t, 8)
	if _, err := b.Control.ImportTopology(t.Context(), root(), wire.TopologyImport{Text: described}); err != nil {
		t.Fatal(err)
	}
	c := b.must("name: c; nodes: 2; placement: spread; walltime: 10h", muster.ClusterBuilding)
	put(t, b.Site, func(tx *store.Tx) error { return controltest.Finish(tx, c.ID) })
	leaf := func(id muster.MachineID) bool { return id <= "fake-04" }
	lost := machineOf(t, b.Site, c.ID, "n02")
	var elsewhere []muster.MachineID
	for i := range 8 {
		if id := muster.MachineID(fmt.Sprintf("fake-%02d", i+1)); leaf(id) != leaf(lost) {
			elsewhere = append(elsewhere, id)
		}
	}
	lose(t, b.Site, c.ID, "n02", toFenced()...)
	put(t, b.Site, func(tx *store.Tx) error {
		n, err := tx.Node(c.ID, "n02")
		if err != nil {
			return err
		}
		n.PreviousMachine = lost
		n.Conditions = []muster.Condition{{Code: muster.ConditionUnreached, Stand: "its leaf", Since: b.clock.Now()}}
		return tx.PutNode(n, "")
	})
	if m, _ := spare(t, b.Site, c.ID, "n02"); m.ID == "" || leaf(m.ID) == leaf(lost) {
		t.Errorf("it gets %q, and had %s", m.ID, lost)
	}
	if m, _ := spare(t, b.Site, c.ID, "n02", elsewhere...); m.ID != "" {
		t.Errorf("it gets %s behind the switch that it left", m.ID)
	}
	b.after(31 * time.Minute)
	if m, _ := spare(t, b.Site, c.ID, "n02", elsewhere...); m.ID == "" {
		t.Error("it waits for ever")
	}
}
