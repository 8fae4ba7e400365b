package storetest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// testForbidden compares, for every way to name a cluster, what a stranger is
// told about one that exists with what they are told about one that does not:
// only the name they gave may differ.
func testForbidden(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	addPeople(t, db)
	Free(t, db, "m1", "m2")
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error { return Place(tx, c, "m1") })
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutToken(store.Token{ID: "t1", User: "alice", Hash: [32]byte{1}}) })
	absent := muster.NewClusterID()
	for name, try := range map[string]func(*store.Tx, muster.ClusterID, string, string, string) error{
		"Cluster": func(tx *store.Tx, id muster.ClusterID, _, _, _ string) error { _, err := tx.Cluster(id); return err },
		"FindID": func(tx *store.Tx, id muster.ClusterID, _, _, _ string) error {
			_, err := tx.FindCluster(string(id))
			return err
		},
		"FindName": func(tx *store.Tx, _ muster.ClusterID, name, _, _ string) error {
			_, err := tx.FindCluster(name)
			return err
		},
		"Nodes": func(tx *store.Tx, id muster.ClusterID, _, _, _ string) error { _, err := tx.Nodes(id); return err },
		"Node": func(tx *store.Tx, id muster.ClusterID, _, _, _ string) error {
			_, err := tx.Node(id, "n01")
			return err
		},
		"QueuePosition": func(tx *store.Tx, id muster.ClusterID, _, _, _ string) error {
			_, err := tx.QueuePosition(id)
			return err
		},
		"PutNode": func(tx *store.Tx, id muster.ClusterID, _, _, _ string) error {
			return tx.PutNode(muster.Node{Cluster: id, Name: "n01", Phase: muster.NodeAssigned}, "")
		},
		"PutMachine": func(tx *store.Tx, id muster.ClusterID, _, _, _ string) error {
			m := NewMachine("m2")
			m.Phase, m.Cluster, m.Node = muster.MachineAllocated, id, "n01"
			return tx.PutMachine(m, "")
		},
		"Note": func(tx *store.Tx, id muster.ClusterID, _, _, _ string) error {
			return tx.Note(muster.AuditCluster, "x", id, "x")
		},
		"Secret": func(tx *store.Tx, id muster.ClusterID, _, _, _ string) error {
			_, err := tx.Secret(id, "munge")
			return err
		},
		"User":        func(tx *store.Tx, _ muster.ClusterID, _, user, _ string) error { _, err := tx.User(user); return err },
		"DeleteUser":  func(tx *store.Tx, _ muster.ClusterID, _, user, _ string) error { return tx.DeleteUser(user) },
		"DeleteToken": func(tx *store.Tx, _ muster.ClusterID, _, _, token string) error { return tx.DeleteToken(token) },
		"PutToken": func(tx *store.Tx, _ muster.ClusterID, _, user, _ string) error {
			return tx.PutToken(store.Token{ID: "t9", User: user, Hash: [32]byte{9}})
		},
	} {
		run := func(id muster.ClusterID, name, user, token string) muster.Error {
			err := db.Update(context.Background(), carol(), func(tx *store.Tx) error { return try(tx, id, name, user, token) })
			wantCode(t, err, muster.ENotFound)
			var found *muster.Error
			if !errors.As(err, &found) {
				t.Fatalf("got %v, want an error with a code", err)
			}
			e := *found
			for _, s := range []string{string(id), name, user, token} {
				e.Message, e.Hint = strings.ReplaceAll(e.Message, s, "?"), strings.ReplaceAll(e.Hint, s, "?")
			}
			return e
		}
		there, not := run(c.ID, "cfd", "alice", "t1"), run(absent, "dfc", "nancy", "t7")
		if !reflect.DeepEqual(there, not) {
			t.Errorf("%s: a hidden record gives %+v, an absent one %+v", name, there, not)
		}
	}
	// A stranger cannot write over it either, nor put one into that project.
	stolen := c
	stolen.Owner, stolen.Project = "carol", "sky"
	wantCode(t, db.Update(context.Background(), carol(), func(tx *store.Tx) error { return tx.PutCluster(stolen, "") }), muster.ENotFound)
	planted := NewCluster("x", "bob", "sea")
	wantCode(t, db.Update(context.Background(), carol(), func(tx *store.Tx) error { return tx.PutCluster(planted, "") }), muster.ENotFound)
	wantCode(t, db.Update(context.Background(), alice(), func(tx *store.Tx) error { return tx.PutCluster(planted, "") }), muster.EForbidden)
	// A member of the project sees it and leaves it alone; a manager may delete it.
	view(t, db, dave(), func(tx *store.Tx) error { _, err := tx.Cluster(c.ID); return err })
	wantCode(t, db.View(context.Background(), dave(), func(tx *store.Tx) error { return tx.MayChange(c) }), muster.EForbidden)
	for _, p := range []muster.ClusterPhase{c.Phase, muster.ClusterDeleting} {
		other := c
		other.Phase = p
		wantCode(t, db.Update(context.Background(), dave(), func(tx *store.Tx) error { return tx.PutCluster(other, "") }), muster.EForbidden)
	}
	c.Phase = muster.ClusterDeleting
	update(t, db, bob(), func(tx *store.Tx) error { return tx.PutCluster(c, "bob asked") })
}

// testAsSystem: a user's own transaction with Muster's rights for one step.
func testAsSystem(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	Free(t, db, "m1")
	c := NewCluster("cfd", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error {
		if err := Place(tx, c, "m1"); err != nil {
			return err
		}
		if tx.Actor().Name != "alice" || tx.AsSystem().Actor().Name != "system" {
			t.Error("the actors are wrong")
		}
		wantCode(t, tx.PutSecret(c.ID, "munge", []byte("x")), muster.ENotFound)
		if err := tx.AsSystem().PutSecret(c.ID, "munge", []byte("x")); err != nil {
			return err
		}
		m, err := tx.Machine("m1")
		if err != nil {
			return err
		}
		m.Phase = muster.MachineActive
		wantCode(t, tx.PutMachine(m, ""), muster.ENotFound)
		return tx.AsSystem().PutMachine(m, "")
	})
	lines := audits(t, db, root(), store.AuditFilter{Cluster: c.ID})
	if last := lines[len(lines)-1]; last.Actor != "alice" || last.To != "active" {
		t.Errorf("the audit says %+v", last)
	}
	// A user who gives himself a machine cannot change what it is.
	Free(t, db, "m2")
	d := NewCluster("d", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error {
		if err := tx.PutCluster(d, ""); err != nil {
			return err
		}
		if err := tx.PutNode(muster.Node{Cluster: d.ID, Name: "n01", Phase: muster.NodeAssigned, Machine: "m2"}, ""); err != nil {
			return err
		}
		m := NewMachine("m2")
		m.Phase, m.Cluster, m.Node, m.Facts.Cores, m.Note = muster.MachineAllocated, d.ID, "n01", 9999, "mine"
		return tx.PutMachine(m, "")
	})
	view(t, db, root(), func(tx *store.Tx) error {
		m, err := tx.Machine("m2")
		if m.Facts.Cores != 4 || m.Note != "" || m.Node != "n01" {
			t.Errorf("alice changed the machine: %+v", m)
		}
		return err
	})
}
