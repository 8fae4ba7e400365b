package storetest

import (
	"context"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// testDiscovered: a cluster of project sea lists carol, of project sky, as a user.
// She sees it and its nodes, and nothing more; and that only as long as it
// lists her.
func testDiscovered(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	addPeople(t, db)
	Free(t, db, "m1", "m2")
	c, other := NewCluster("cfd", "alice", "sea"), NewCluster("own", "alice", "sea")
	update(t, db, alice(), func(tx *store.Tx) error {
		if err := Place(tx, c, "m1"); err != nil {
			return err
		}
		return Place(tx, other, "m2")
	})
	v := muster.Volume{ID: muster.NewVolumeID(), Name: "data", Owner: "alice", Project: "sea", Kind: "data", Driver: "nfs", Phase: "ready"}
	update(t, db, muster.System(), func(tx *store.Tx) error {
		if err := tx.PutSecret(c.ID, "munge", []byte("x")); err != nil {
			return err
		}
		return tx.PutVolume(v, "")
	})
	sees := func(want bool) {
		t.Helper()
		view(t, db, carol(), func(tx *store.Tx) error {
			list, err := tx.Clusters(store.ClusterFilter{Living: true})
			if err != nil {
				return err
			}
			counts, err := tx.Count()
			if err != nil {
				return err
			}
			of, err := tx.NodesOf(c.ID, other.ID)
			if err != nil {
				return err
			}
			_, byID := tx.Cluster(c.ID)
			_, byName := tx.FindCluster("cfd")
			_, byBoth := tx.FindCluster("sea/cfd")
			_, nodes := tx.Nodes(c.ID)
			_, node := tx.Node(c.ID, "n01")
			for what, saw := range map[string]bool{
				"list": len(list) == 1 && list[0].ID == c.ID, "count": counts.Clusters[muster.ClusterBuilding] == 1 && len(counts.Nodes) == 1,
				"nodes of": len(of) == 1 && len(of[c.ID]) == 1,
				"ID":       byID == nil, "name": byName == nil, "project/name": byBoth == nil, "nodes": nodes == nil, "node": node == nil,
			} {
				if saw != want {
					t.Errorf("%s: %v, want %v", what, saw, want)
				}
			}
			if !want && (len(list) != 0 || len(counts.Nodes) != 0 || len(of) != 0) {
				t.Error("something is left to see")
			}
			_, err = tx.Cluster(other.ID)
			wantCode(t, err, muster.ENotFound)
			_, err = tx.Volume(v.ID)
			wantCode(t, err, muster.ENotFound)
			_, err = tx.Secret(c.ID, "munge")
			wantCode(t, err, muster.ENotFound)
			lines, err := tx.Audits(store.AuditFilter{Cluster: c.ID})
			if len(lines) > 0 {
				t.Error("she reads what people of the project did")
			}
			return err
		})
	}
	sees(false)
	c.Spec.Users = []string{"alice", "carol"}
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	sees(true)
	for name, try := range map[string]func(*store.Tx) error{
		"cluster": func(tx *store.Tx) error {
			d := c
			d.Phase = muster.ClusterDeleting
			return tx.PutCluster(d, "")
		},
		"may":    func(tx *store.Tx) error { return tx.MayChange(c) },
		"stolen": func(tx *store.Tx) error { d := c; d.Owner, d.Project = "carol", "sky"; return tx.PutCluster(d, "") },
		"node": func(tx *store.Tx) error {
			n, err := tx.Node(c.ID, "n01")
			if err != nil {
				return err
			}
			n.Leave = true
			return tx.PutNode(n, "")
		},
	} {
		if err := db.Update(context.Background(), carol(), try); muster.CodeOf(err) != muster.EForbidden {
			t.Errorf("%s: got %v, want %s", name, err, muster.EForbidden)
		}
	}
	// The managers of the project do not notice.
	update(t, db, bob(), func(tx *store.Tx) error { return tx.MayChange(c) })
	c.Spec.Users = []string{"alice"}
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutCluster(c, "") })
	sees(false)
	wantCode(t, db.View(context.Background(), carol(), func(tx *store.Tx) error { return tx.MayChange(c) }), muster.ENotFound)
}
