package control_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// ready makes a cluster of nodes with a shared head that is in use.
func ready(t *testing.T, s *controltest.Site, name string, nodes int, more string) muster.ClusterID {
	t.Helper()
	created, err := s.Control.CreateCluster(t.Context(), root(), yaml(fmt.Sprintf("name: %s; nodes: %d; head: shared; users: [alice]%s", name, nodes, more)))
	if err != nil || created.Status != "building" {
		t.Fatal(created.Status, err)
	}
	put(t, s, func(tx *store.Tx) error { return controltest.Finish(tx, created.ID) })
	return created.ID
}

func put(t *testing.T, s *controltest.Site, f func(tx *store.Tx) error) {
	t.Helper()
	if err := s.Store.Update(t.Context(), muster.System(), f); err != nil {
		t.Fatal(err)
	}
}

func machineOf(t *testing.T, s *controltest.Site, id muster.ClusterID, node string) muster.MachineID {
	t.Helper()
	var n muster.Node
	put(t, s, func(tx *store.Tx) (err error) { n, err = tx.Node(id, node); return err })
	return n.Machine
}

// lose takes a node's machine away, as a repair does: up to fenced.
func lose(t *testing.T, s *controltest.Site, id muster.ClusterID, node string, phases ...muster.NodePhase) {
	t.Helper()
	put(t, s, func(tx *store.Tx) error {
		n, err := tx.Node(id, node)
		if err != nil {
			return err
		}
		for _, p := range phases {
			n.Phase = p
			if p == muster.NodeFenced {
				m, err := tx.Machine(n.Machine)
				if err != nil {
					return err
				}
				m.Phase, m.Cluster, m.Node, m.Attempt, n.Machine = muster.MachineSuspect, "", "", 0, ""
				if err := tx.PutMachine(m, "silent and off"); err != nil {
					return err
				}
			}
			if err := tx.PutNode(n, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

func toFenced() []muster.NodePhase {
	return []muster.NodePhase{muster.NodeUnreachable, muster.NodeFencing, muster.NodeFenced}
}

func spare(t *testing.T, s *controltest.Site, id muster.ClusterID, node string, not ...muster.MachineID) (m muster.Machine, why string) {
	t.Helper()
	put(t, s, func(tx *store.Tx) error {
		c, err := tx.Cluster(id)
		if err != nil {
			return err
		}
		nodes, err := tx.Nodes(id)
		if err != nil {
			return err
		}
		n, err := tx.Node(id, node)
		if err != nil {
			return err
		}
		m, why, err = s.Control.Allocator.Repairs(tx).Choose(c, nodes, n, not)
		return err
	})
	return m, why
}

// change changes machines that are not held.
func change(t *testing.T, s *controltest.Site, f func(i int, m *muster.Machine)) {
	t.Helper()
	put(t, s, func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{})
		if err != nil {
			return err
		}
		for i, m := range list {
			if f(i, &m); m.Phase.Held() {
				continue
			}
			if err := tx.PutMachine(m, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// With one free machine and a node that waits for it, neither a new request
// nor one that waits already takes it.
func TestRepairsGoBeforeTheQueue(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 4})
	id := ready(t, s, "cfd", 3, "")
	waiting, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: big; nodes: 2; head: shared; users: [alice]"))
	if err != nil || waiting.Status != "queued" {
		t.Fatal(waiting.Status, err)
	}
	for _, phases := range [][]muster.NodePhase{toFenced()[:2], toFenced()[2:]} {
		lose(t, s, id, "n02", phases...)
		// One machine is enough for this one, and it is free.
		small, err := s.Control.CreateCluster(t.Context(), root(), yaml(fmt.Sprintf("name: small-%d; nodes: 1; head: shared; users: [bob]", len(phases))))
		if err != nil || small.Status != "queued" {
			t.Fatalf("after %v a new request is %s, %v", phases, small.Status, err)
		}
		if i := slices.IndexFunc(small.Answer.Rejections, func(r muster.Rejection) bool { return r.Reason == "reserved" }); i < 0 || small.Answer.Rejections[i].Count != 1 {
			t.Errorf("the machine is not reserved: %+v", small.Answer.Rejections)
		}
		if _, err := s.Control.DeleteCluster(t.Context(), root(), string(waiting.ID)); err != nil && len(phases) == 2 {
			t.Fatal(err)
		}
		if n, err := s.Control.Allocator.Promote(t.Context()); n != 0 || err != nil {
			t.Fatalf("the queue took it: %d, %v", n, err)
		}
	}
	m, why := spare(t, s, id, "n02")
	if m.Phase != muster.MachineFree || why != "" {
		t.Fatalf("spare %+v, %q", m, why)
	}
	put(t, s, func(tx *store.Tx) error {
		n, err := tx.Node(id, "n02")
		if err != nil {
			return err
		}
		n.Phase, n.Machine, n.Repairs = muster.NodeAssigned, m.ID, 1
		m.Phase, m.Cluster, m.Node = muster.MachineAllocated, id, "n02"
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
		return tx.PutNode(n, "")
	})
	// What is free now goes to the queue again.
	change(t, s, func(_ int, m *muster.Machine) {
		if m.Phase == muster.MachineSuspect {
			m.Phase = muster.MachineTesting
		}
	})
	change(t, s, func(_ int, m *muster.Machine) {
		if m.Phase == muster.MachineTesting {
			m.Phase = muster.MachineCleaning
		}
	})
	change(t, s, func(_ int, m *muster.Machine) {
		if m.Phase == muster.MachineCleaning {
			m.Phase = muster.MachineFree
		}
	})
	if n, err := s.Control.Allocator.Promote(t.Context()); n != 1 || err != nil {
		t.Errorf("the queue got %d, %v", n, err)
	}
}

// The same class, nearest to the lost machine, then to the others.
func TestSpareIsNear(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 16}) // two racks of eight
	rack := func(name string) func(int, *muster.Machine) {
		return func(_ int, m *muster.Machine) { m.Facts.Rack = name }
	}
	id := ready(t, s, "cfd", 3, "")
	lost := machineOf(t, s, id, "n02")
	lose(t, s, id, "n02", toFenced()...)
	var was muster.Machine
	change(t, s, func(_ int, m *muster.Machine) {
		if m.ID == lost {
			was = *m
		}
	})
	first, _ := spare(t, s, id, "n02")
	if first.Facts.Rack != was.Facts.Rack || first.ID == lost {
		t.Errorf("spare %s of rack %s, lost %s of %s", first.ID, first.Facts.Rack, lost, was.Facts.Rack)
	}
	again, _ := spare(t, s, id, "n02")
	other, _ := spare(t, s, id, "n02", first.ID)
	if again.ID != first.ID || other.ID == first.ID || other.ID == "" {
		t.Errorf("first %s, again %s, without it %s", first.ID, again.ID, other.ID)
	}
	change(t, s, rack("far"))
	put(t, s, func(tx *store.Tx) error { // the lost one stood elsewhere
		m, err := tx.Machine(lost)
		m.Facts.Rack = "gone"
		if err != nil {
			return err
		}
		return tx.PutMachine(m, "")
	})
	held := machineOf(t, s, id, "n01")
	var at muster.Machine
	put(t, s, func(tx *store.Tx) (err error) { at, err = tx.Machine(held); return err })
	one := false
	change(t, s, func(_ int, m *muster.Machine) {
		if m.Phase == muster.MachineFree && !one {
			m.Facts.Rack, one = at.Facts.Rack, true
		}
	})
	if m, why := spare(t, s, id, "n02"); m.Facts.Rack != at.Facts.Rack {
		t.Errorf("spare %s of rack %s, the others are in %s (%s)", m.ID, m.Facts.Rack, at.Facts.Rack, why)
	}
}

// Only the same class, unless nodes may differ; nobody who is set aside; and a
// word on what is missing.
func TestSpareFits(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 9})
	strict, mixed := ready(t, s, "strict", 1, ""), ready(t, s, "mixed", 1, "; mixed: true")
	separate, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: sep; nodes: 1; head: separate; users: [alice]"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, func(tx *store.Tx) error { return controltest.Finish(tx, separate.ID) })
	lose(t, s, strict, "n01", toFenced()...)
	lose(t, s, mixed, "n01", toFenced()...)
	lose(t, s, separate.ID, "head", toFenced()...)
	reasons := []func(m *muster.Machine){
		func(m *muster.Machine) { m.Intent = muster.IntentDrain },
		func(m *muster.Machine) { m.Phase = muster.MachineMaintenance },
		func(m *muster.Machine) { m.Conditions = []muster.Condition{{Code: "not-answering"}} },
		func(m *muster.Machine) { m.Phase = muster.MachineCleaning },
		func(m *muster.Machine) { m.Facts.Class = "other" },
	}
	change(t, s, func(_ int, m *muster.Machine) {
		if m.Phase == muster.MachineFree && len(reasons) > 0 {
			reasons[0](m)
			reasons = reasons[1:]
		}
	})
	if len(reasons) != 0 {
		t.Fatalf("%d reasons are left", len(reasons))
	}
	m, why := spare(t, s, strict, "n01")
	if m.ID != "" || !regexp.MustCompile("standard.* 2 .*, 3 .*, 1 .*, 1 .*, 1 ").MatchString(why) {
		t.Errorf("spare %q: %s", m.ID, why)
	}
	for id, node := range map[muster.ClusterID]string{mixed: "n01", separate.ID: "head"} {
		if m, why := spare(t, s, id, node); m.Facts.Class != "other" {
			t.Errorf("for %s of %s: %q, %s", node, id, m.ID, why)
		}
	}
	m, why = spare(t, s, mixed, "n01", m.ID, "fake-99")
	_ = m
	if strings.Contains(why, "\n") {
		t.Errorf("%q", why)
	}
	// An image that needs more than the others have.
	s.Images.Change("hpc", func(i *muster.Image) { i.Requires.Memory = 1 << 40 })
	if m, why := spare(t, s, mixed, "n01"); m.ID != "" || !strings.Contains(why, "image") {
		t.Errorf("spare %q: %s", m.ID, why)
	}
}

// A request that is answered while a plan goes stale does not get a machine
// that an administrator wants.
func TestDrainedMachineIsNotPlaced(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2})
	change(t, s, func(i int, m *muster.Machine) {
		if i == 0 {
			m.Intent = muster.IntentDrain
		}
	})
	created, err := s.Control.CreateCluster(t.Context(), root(), yaml("name: a; nodes: 2; head: shared; users: [alice]"))
	if err != nil || created.Status != "queued" || created.Answer.Free != 1 {
		t.Fatalf("%s, %v, %+v", created.Status, err, created.Answer)
	}
	if i := slices.IndexFunc(created.Answer.Rejections, func(r muster.Rejection) bool { return r.Reason == "maintenance" }); i < 0 || !strings.Contains(created.Answer.Rejections[i].Text, "drain") {
		t.Errorf("%+v", created.Answer.Rejections)
	}
	var q wire.ClusterQuery
	list, _ := s.Control.Clusters(t.Context(), root(), q)
	if len(list.Clusters) != 1 || !slices.ContainsFunc(list.Clusters[0].Conditions, func(c muster.Condition) bool { return c.Code == "waiting-for-missing-machines" }) {
		t.Errorf("it does not say that it waits for an administrator: %+v", list)
	}
}
