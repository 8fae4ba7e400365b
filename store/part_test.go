package store_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// Of all machines with a part one at a time is in use: the store refuses another one whatever
// the code above it has seen, also after a restart, and until the first is free again.
func TestPartsAreHeldOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "muster.db")
	open := func() *store.DB {
		db, err := store.Open(t.Context(), file, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	storetest.Free(t, db, "dense", "s1", "s2", "other")
	ctx := context.Background()
	change := func(id muster.MachineID, to muster.MachinePhase, parts ...string) error {
		return db.Update(ctx, muster.System(), func(tx *store.Tx) error {
			m, err := tx.Machine(id)
			if err != nil {
				return err
			}
			if m.Phase = to; len(parts) > 0 {
				m.Facts.Parts = parts
			}
			if !to.Held() {
				m.Cluster, m.Node = "", ""
			}
			return tx.PutMachine(m, "")
		})
	}
	place := func(name string, ids ...muster.MachineID) error {
		return db.Update(ctx, muster.System(), func(tx *store.Tx) error {
			return storetest.Place(tx, storetest.NewCluster(name, "alice", "sea"), ids...)
		})
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(err error) {
		t.Helper()
		if got := errortest.Brief(err); !strings.Contains(got, "part-in-use") || !store.PartTaken(err) || muster.CodeOf(err) != muster.EConflict {
			t.Fatalf("%v (%s)", err, got)
		}
	}
	must(change("dense", muster.MachineFree, "p0", "p1"))
	must(change("s1", muster.MachineFree, "p0"))
	must(change("s2", muster.MachineFree, "p1"))
	must(place("one", "s1"))
	refused(place("two", "dense"))
	must(place("three", "s2", "other"))
	refused(change("dense", muster.MachineTesting))

	must(db.Close())
	db = open()
	t.Cleanup(func() { _ = db.Close() })
	refused(place("four", "dense"))
	leave := func(id muster.MachineID) {
		t.Helper()
		must(db.Update(ctx, muster.System(), func(tx *store.Tx) error {
			m, err := tx.Machine(id)
			if err != nil {
				return err
			}
			nodes, err := tx.Nodes(m.Cluster)
			if err != nil {
				return err
			}
			for _, n := range nodes {
				if n.Machine == id {
					n.Phase = muster.NodeGone
					if err := tx.PutNode(n, ""); err != nil {
						return err
					}
				}
			}
			m.Phase, m.Cluster, m.Node = muster.MachineCleaning, "", ""
			return tx.PutMachine(m, "")
		}))
	}
	leave("s1")
	leave("s2")
	refused(place("five", "dense")) // they are being cleaned
	must(change("s1", muster.MachineFree))
	must(change("s2", muster.MachineFree))
	must(place("six", "dense"))
	refused(place("seven", "s2"))
}
