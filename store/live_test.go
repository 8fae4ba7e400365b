package store_test

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// TestNodeNow checks that what is found in memory is what was committed last,
// and what NodesSince and MachinesSince tell of it.
func TestNodeNow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "muster.db")
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	update := func(f func(tx *store.Tx) error) error {
		return db.Update(context.Background(), muster.System(), f)
	}
	n := muster.Node{Cluster: "c-1", Name: "n01", Phase: muster.NodeAssigned, Role: muster.RoleCompute, Address: netip.MustParseAddr("10.0.0.1")}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(update(func(tx *store.Tx) error {
		return errors.Join(tx.PutCluster(muster.Cluster{ID: "c-1", Name: "c", Owner: "alice", Project: "p", Phase: muster.ClusterBuilding, Image: "sha256:1"}, ""), tx.PutNode(n, ""))
	}))
	now := func() muster.Node {
		t.Helper()
		got, err := db.NodeNow(t.Context(), muster.System(), "c-1", "n01")
		must(err)
		return got
	}
	var rev int64
	since := func() (list []muster.Node) {
		t.Helper()
		must(db.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
			list, rev, err = tx.NodesSince("c-1", rev)
			return err
		}))
		return list
	}
	if got := now(); got.Phase != muster.NodeAssigned || len(since()) != 1 || len(since()) != 0 {
		t.Errorf("node %+v", got)
	}
	n.Phase, n.Attempt = muster.NodeBooting, 1
	if err := update(func(tx *store.Tx) error { return errors.Join(tx.PutNode(n, ""), errors.New("no")) }); err == nil {
		t.Fatal("no error")
	}
	if got := now(); got.Attempt != 0 || len(since()) != 0 {
		t.Errorf("a change that was undone is seen: %+v", got)
	}
	must(update(func(tx *store.Tx) error { return tx.PutNode(n, "") }))
	if got := now(); got.Attempt != 1 || len(since()) != 1 {
		t.Errorf("node %+v", got)
	}
	if _, err := db.NodeNow(t.Context(), muster.Actor{Name: "alice"}, "c-1", "n01"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("a user sees it: %v", err)
	}
	if _, err := db.NodeNow(t.Context(), muster.System(), "c-1", "n02"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("a node that is not there: %v", err)
	}
	for _, p := range []muster.NodePhase{muster.NodeDraining, muster.NodeGone} {
		n.Phase = p
		must(update(func(tx *store.Tx) error { return tx.PutNode(n, "") }))
		if got := now(); got.Phase != p {
			t.Errorf("node %+v", got)
		}
	}
	must(db.Close())
	if _, err := db.NodeNow(t.Context(), muster.System(), "c-1", "n01"); err == nil {
		t.Error("a closed store answers")
	}
	if db, err = store.Open(t.Context(), path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := now(); got.Phase != muster.NodeGone {
		t.Errorf("after a restart: %+v", got)
	}
	must(db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		list, rev, err := tx.MachinesSince(0)
		if len(list) != 0 || rev != 0 {
			t.Errorf("machines %v at %d", list, rev)
		}
		return err
	}))
}
