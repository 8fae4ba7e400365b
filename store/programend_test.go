package store_test

import (
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
)

// Runs that stayed open on clusters which are gone are ended at the start; a damaged one keeps no
// cluster from going.
func TestLostRunsAreClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := db.Update(t.Context(), muster.System(), f); err != nil {
			t.Fatal(err)
		}
	}
	gone, damaged, living := storetest.NewCluster("gone", "alice", "sea"), storetest.NewCluster("damaged", "alice", "sea"), storetest.NewCluster("living", "alice", "sea")
	p := storetest.NewProgram("md", "sea")
	runs := map[string]muster.ProgramRun{}
	do(func(tx *store.Tx) error {
		if err := tx.PutUser(muster.User{Name: "alice", UID: 5000, Projects: []string{"sea"}}, ""); err != nil {
			return err
		}
		for _, c := range []muster.Cluster{gone, damaged, living} {
			if err := tx.PutCluster(c, ""); err != nil {
				return err
			}
			runs[c.Name] = storetest.NewProgramRun(p, c.ID, "alice")
			if err := tx.PutProgramRun(runs[c.Name]); err != nil {
				return err
			}
		}
		return nil
	})
	file := raw(t, dir)
	for query, arg := range map[string]string{
		`UPDATE clusters SET phase = 'deleted' WHERE id = ?`: string(gone.ID),
		`UPDATE program_runs SET doc = '{"x' WHERE id = ?`:   string(runs["damaged"].ID),
	} {
		if _, err := file.ExecContext(t.Context(), query, arg); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{1, 0} {
		do(func(tx *store.Tx) error {
			if n, err := tx.CloseLostRuns(); err != nil || n != want {
				t.Errorf("%d runs were ended, %v; want %d", n, err, want)
			}
			return nil
		})
	}
	for name, want := range map[string]muster.ProgramRunState{"gone": muster.ProgramRunFailed, "living": muster.ProgramRunOpen} {
		do(func(tx *store.Tx) error {
			if r, err := tx.ProgramRun(runs[name].ID); err != nil || r.State != want || r.Lost != (want == muster.ProgramRunFailed) {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
			return nil
		})
	}
	for _, phase := range []muster.ClusterPhase{muster.ClusterDeleting, muster.ClusterDeleted} {
		damaged.Phase = phase
		do(func(tx *store.Tx) error { return tx.PutCluster(damaged, "") })
	}
}
