package image

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	muster "github.com/muster-hpc/muster"
)

// Derived images go when nobody has used them for long, or when there are too many; one
// in use, one that was just made and every image of a recipe stay.
func TestPrune(t *testing.T) {
	t.Parallel()
	s := open(t)
	base := put(t, s, "hpc", "base")
	derive := func(i int, age time.Duration) *muster.Image {
		m := sample("hpc", fmt.Appendf(nil, "derived %d", i))
		m.Base, m.Added = base.ID, []string{fmt.Sprintf("p%d", i)}
		m.ID = contentID(m.Recipe, m.Base, m.Added, m.Architecture, m.Packages)
		got := putImage(t, s, m, fmt.Sprintf("derived %d", i))
		if err := s.setAlias("hpc", alias{ID: base.ID, Recipe: base.Recipe}); err != nil {
			t.Fatal(err)
		}
		data, err := derivationDoc.Encode(&derivation{ID: got.ID})
		if err != nil {
			t.Fatal(err)
		}
		file := s.derivedPath(derivedKey(base.ID, m.Added))
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		return got
	}
	fresh, old, used := derive(0, time.Minute), derive(1, 15*24*time.Hour), derive(2, 30*24*time.Hour)
	var many []muster.ImageID
	for i := range 5 {
		many = append(many, derive(10+i, time.Duration(2+i)*time.Hour).ID)
	}
	inUse := users{used.ID, []string{"c-1"}}
	gone, err := s.Prune(context.Background(), Keep{For: 14 * 24 * time.Hour, Most: 4}, inUse)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []muster.ImageID{old.ID, many[3], many[4]} {
		if !slices.Contains(gone, want) {
			t.Errorf("image %s stays", want.Short())
		}
	}
	for _, stays := range []muster.ImageID{base.ID, fresh.ID, used.ID, many[0], many[1], many[2]} {
		if _, err := s.Show(stays); err != nil {
			t.Errorf("image %s is gone: %v", stays.Short(), err)
		}
	}
	if len(gone) != 3 {
		t.Errorf("%d were removed, want 3", len(gone))
	}
	// Somebody asks for one right now: it stays, though no cluster says yet that it uses it.
	asked := derive(3, 20*24*time.Hour)
	file := s.derivedPath(derivedKey(base.ID, asked.Added))
	unlock, err := s.lock("derived-" + derivedKey(base.ID, asked.Added))
	if err != nil {
		t.Fatal(err)
	}
	pruned := make(chan error, 1)
	go func() {
		_, err := s.Prune(context.Background(), Keep{Most: 100}, inUse)
		pruned <- err
	}()
	time.Sleep(200 * time.Millisecond)
	if err := os.Chtimes(file, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-pruned; err != nil {
		t.Fatal(err)
	}
	if _, err := s.Show(asked.ID); err != nil {
		t.Errorf("an image that somebody asked for meanwhile is gone: %v", err)
	}
	// Its last cluster has just gone: now its time begins.
	if gone, err = s.Prune(context.Background(), Keep{}, nil); err != nil || len(gone) != 0 {
		t.Errorf("removed %v, %v", gone, err)
	}
}
