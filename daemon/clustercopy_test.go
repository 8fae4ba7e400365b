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

// Clusters that have copies and are not in the records keep their images; a copy that cannot
// be read keeps all.
func TestAbandonedImages(t *testing.T) {
	t.Parallel()
	known, lost := filled("c-1", "known", 1, 1, "m1"), filled("c-2", "lost", 1, 1, "m2")
	lost.Cluster.Image = "sha256:lost"
	st := oldStore(t, nil, known)
	db, err := store.Open(t.Context(), st.path("muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &Server{state: st, db: db, cfg: Config{State: st.dir}}
	if list, err := s.abandonedImages(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if err := os.Mkdir(st.path(copiesDir), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(id muster.ClusterID, data []byte) {
		t.Helper()
		if err := os.WriteFile(copyPath(st.dir, id), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := copyDoc.Encode(&lost)
	if err != nil {
		t.Fatal(err)
	}
	write("c-2", data)
	write("c-1", []byte("it is in the records"))
	list, err := s.abandonedImages(t.Context())
	if err != nil || len(list) != 1 || len(list["sha256:lost"]) != 1 || list["sha256:lost"][0] != "lost (c-2, which is not in the records)" {
		t.Errorf("%v, %v", list, err)
	}
	write("c-3", []byte("{"))
	if _, err := s.abandonedImages(t.Context()); muster.CodeOf(err) != muster.ECorrupt {
		t.Errorf("a copy that cannot be read: %v", err)
	}
}
