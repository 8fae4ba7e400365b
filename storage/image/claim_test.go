package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	muster "github.com/muster-hpc/muster"
)

// wishes are the derived images that the clusters of projects have or wait for.
type wishes map[string][]string

func (wishes) ImageUsers(context.Context, muster.ImageID) ([]string, error) { return nil, nil }
func (w wishes) Derived(context.Context) (map[string][]string, error)       { return w, nil }

// laterClock is the system's, some time ahead.
type laterClock struct {
	muster.SystemClock
	mu    sync.Mutex
	ahead time.Duration
}

func (c *laterClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *laterClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// shelf is a store with derived images of one base that need no building.
type shelf struct {
	*Store
	t     *testing.T
	clock *laterClock
	base  *muster.Image
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	c := &laterClock{}
	s, err := Open(t.TempDir(), nil, WithClock(c))
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{s, t, c, put(t, s, "hpc", "base")}
}

func packages(i int) []string { return []string{fmt.Sprintf("p%d", i)} }

func (s *shelf) key(i int) string { return DerivedKey(s.base, packages(i)) }

// add puts a derived image there that nobody asked for yet.
func (s *shelf) add(i int) muster.ImageID {
	s.t.Helper()
	m := sample("hpc", fmt.Appendf(nil, "derived %d", i))
	m.Base, m.Added, m.Created = s.base.ID, packages(i), s.clock.Now()
	m.ID = contentID(m.Recipe, m.Base, m.Added, m.Architecture, m.Packages)
	got := putImage(s.t, s.Store, m, fmt.Sprintf("derived %d", i))
	err := errors.Join(s.setAlias("hpc", alias{ID: s.base.ID, Recipe: s.base.Recipe}), s.noteDerived(s.key(i), derivation{ID: got.ID}))
	if err != nil {
		s.t.Fatal(err)
	}
	return got.ID
}

// ask asks for a derived image that is there.
func (s *shelf) ask(project string, i int, k Keep, w wishes) {
	s.t.Helper()
	s.clock.pass(time.Minute)
	r, err := s.Derive(s.t.Context(), s.base.ID, packages(i), BuildOptions{For: Asker{Project: project, Keep: k, Users: w}})
	if err != nil || r.Built {
		s.t.Fatalf("image %d: %+v, %v", i, r, err)
	}
}

func (s *shelf) askers(id muster.ImageID) string { return fmt.Sprint(s.Askers()[id]) }

// A project has so many derived images: its unused ones go for new ones, those used last
// the last; what its clusters have, and what others asked for, stays.
func TestAProjectsImagesMakeRoom(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	var ids []muster.ImageID
	for i := range 6 {
		ids = append(ids, s.add(i))
	}
	k := Keep{PerProject: 3}
	s.ask("cfd", 0, k, nil)
	for i := range 3 {
		s.ask("bio", i, k, nil)
	}
	if got := s.askers(ids[0]); got != "[bio cfd]" {
		t.Errorf("the same content for two: %s", got)
	}
	s.ask("bio", 3, k, wishes{"bio": {s.key(1), s.key(3)}}) // 0 was used least lately
	for i, want := range []string{"[cfd]", "[bio]", "[bio]", "[bio]", "[]"} {
		if got := s.askers(ids[i]); got != want {
			t.Errorf("image %d is of %s, want %s", i, got, want)
		}
	}
	// One that it has already needs no room; a build that is under way does.
	s.ask("bio", 2, k, wishes{"bio": {s.key(1), s.key(2), s.key(3)}})
	s.ask("bio", 4, k, wishes{"bio": {s.key(1), "being built", s.key(4)}})
	for _, i := range []int{2, 3} {
		if _, err := s.Show(ids[i]); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("image %d has no place and is there: %v", i, err)
		}
	}
	for _, i := range []int{0, 1, 4, 5} {
		if _, err := s.Show(ids[i]); err != nil {
			t.Errorf("image %d: %v", i, err)
		}
	}
	// The record outlives the process.
	again, err := Open(s.Dir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again.Askers(), s.Askers(); !maps.EqualFunc(got, want, slices.Equal) || len(got) != 4 {
		t.Errorf("%v, want %v", got, want)
	}
}

// However many images one project asks for, those of another stay as long as they would.
func TestPruneKeepsEachProjectsShare(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	k := Keep{Most: 5, PerProject: 3}
	mine := s.add(0)
	s.ask("cfd", 0, k, nil)
	var flood []muster.ImageID
	for i := 1; i <= 8; i++ {
		flood = append(flood, s.add(i))
		// By a server that had no such bound, or a greater one.
		if err := s.claim(s.key(i), "bio"); err != nil {
			t.Fatal(err)
		}
		s.clock.pass(time.Minute)
	}
	s.clock.pass(2 * time.Hour)
	gone, err := s.Prune(t.Context(), k, wishes{"bio": {s.key(1)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Show(mine); err != nil {
		t.Errorf("another project's image is gone: %v", err)
	}
	// The first is in use; of the others those stay that were asked for last.
	want := slices.Clone(flood[1:6])
	slices.Sort(want)
	slices.Sort(gone)
	if !slices.Equal(gone, want) {
		t.Errorf("removed %v, want %v", gone, want)
	}
	// What a project's clusters have is claimed for it, whoever asked; unused long, it goes.
	s.clock.pass(13 * 24 * time.Hour)
	if _, err = s.Prune(t.Context(), k, wishes{"ocean": {s.key(1)}}); err != nil || s.askers(flood[0]) != "[bio ocean]" {
		t.Errorf("%s, %v", s.askers(flood[0]), err)
	}
	s.clock.pass(2 * 24 * time.Hour)
	if _, err = s.Prune(t.Context(), k, wishes{"ocean": {s.key(1)}}); err != nil || s.askers(flood[0]) != "[ocean]" || len(s.Askers()) != 1 {
		t.Errorf("%v, %v", s.Askers(), err)
	}
}

// Nothing of a root that a tenant saved is run to add packages to it.
func TestNothingIsAddedToASavedRoot(t *testing.T) {
	t.Parallel()
	s := open(t)
	m := sample("raw", []byte("root"))
	m.Saved = &muster.ImageSaved{Project: "bio", Name: "solver", Base: m.ID}
	m.ID = savedID(m)
	saved := putImage(t, s, m, "root")
	if _, err := s.Derive(t.Context(), saved.ID, []string{"nano"}, BuildOptions{}); muster.ReasonOf(err) != muster.ReasonPackagesRefused {
		t.Errorf("packages: %v", err)
	}
	if r, err := s.Derive(t.Context(), saved.ID, []string{saved.Packages[0].Name}, BuildOptions{}); err != nil || r.Image.ID != saved.ID {
		t.Errorf("what it has already: %v", err)
	}
}
