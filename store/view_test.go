package store

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// A view sees nothing in the cache when something was committed while it began: nobody
// knows whether it sees that.
func TestACommitWhileAViewBegins(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), t.TempDir()+"/m.db", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, commits := range []bool{false, true} {
		s := &session{db: db, conn: db.writer, seen: db.cache.now()}
		if commits {
			if err := db.Update(t.Context(), muster.System(), func(tx *Tx) error { return tx.PutDuration("boot", "", "", 1) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.date(); err != nil || (s.seen == unknown) != commits {
			t.Errorf("something was committed: %v, and it sees what there was at %d: %v", commits, s.seen, err)
		}
	}
}

// A cluster that is deleted leaves nothing behind in memory.
func TestADeletedClusterIsForgotten(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), t.TempDir()+"/m.db", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := muster.Cluster{ID: "c-1", Name: "c", Owner: "alice", Project: "p", Phase: muster.ClusterBuilding}
	for _, c.Phase = range []muster.ClusterPhase{muster.ClusterBuilding, muster.ClusterDeleting, muster.ClusterDeleted} {
		if err := db.Update(t.Context(), muster.System(), func(tx *Tx) error {
			if err := tx.PutCluster(c, ""); err != nil || c.Phase != muster.ClusterBuilding {
				return err
			}
			return tx.PutNode(muster.Node{Cluster: c.ID, Name: "n01", Phase: muster.NodeAssigned}, "")
		}); err != nil {
			t.Fatal(err)
		}
		if err := db.View(t.Context(), muster.System(), func(tx *Tx) error { _, err := tx.Nodes(c.ID); return err }); err != nil {
			t.Fatal(err)
		}
		want := 1
		if c.Phase == muster.ClusterDeleted {
			want = 0
		}
		if len(db.cache.clusters) != want || len(db.cache.nodes) != want {
			t.Errorf("%s: %d clusters, and nodes of %d", c.Phase, len(db.cache.clusters), len(db.cache.nodes))
		}
	}
}
