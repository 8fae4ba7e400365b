package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// A start removes the copies of clusters that are deleted, and of no other: one that the
// store does not know may be all that is left of it.
func TestStaleCopiesGo(t *testing.T) {
	t.Parallel()
	ended := filled("c-1", "ended", 1, 1, "m1")
	st := oldStore(t, func(tx *store.Tx) error { return end(tx, filled("c-1", "ended", 1, 1, "m1")) }, ended, filled("c-2", "lives", 1, 1, "m2"))
	db, err := store.Open(t.Context(), st.path("muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &Server{state: st, db: db, cfg: Config{State: st.dir}}
	if err := s.cfg.setDefaults(); err != nil {
		t.Fatal(err)
	}
	s.log = s.cfg.Log
	if err := os.Mkdir(st.path(copiesDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, id := range []muster.ClusterID{"c-1", "c-2", "c-3"} {
		if err := os.WriteFile(copyPath(st.dir, id), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := copies{s: s, dirty: map[muster.ClusterID]bool{}, done: map[muster.ClusterID]copied{}}
	c.all(t.Context())
	c.write(t.Context(), true)
	left, err := filepath.Glob(copyPath(st.dir, "*"))
	if want := []string{copyPath(st.dir, "c-2"), copyPath(st.dir, "c-3")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%q are left, not %q (%v)", left, want, err)
	}
}
