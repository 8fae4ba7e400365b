package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	muster "github.com/muster-hpc/muster"
)

// contentAt publishes a content of an image as if it had been built then; mark makes it
// another one than the others.
func contentAt(t *testing.T, s *Store, name, day, mark string) *muster.Image {
	t.Helper()
	at, err := time.Parse(time.DateTime, day+" 12:00:00")
	if err != nil {
		t.Fatal(err)
	}
	m := sample(name, []byte(mark))
	m.Created = at
	m.Packages = append(m.Packages, muster.ImagePackage{Name: "mark", Version: mark, Architecture: "amd64"})
	m.ID = contentID(m.Recipe, m.Base, m.Added, m.Architecture, m.Packages)
	return putImage(t, s, m, mark)
}

// at opens a store whose clock stands at a day.
func at(t *testing.T, day string) (*Store, *laterClock) {
	t.Helper()
	now, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	clock := &laterClock{}
	clock.pass(time.Until(now))
	return open(t, WithClock(clock)), clock
}

func TestResolveVersion(t *testing.T) {
	t.Parallel()
	s, _ := at(t, "2026-12-15")
	old := contentAt(t, s, "hpc", "2026-06-03", "1")
	mid := contentAt(t, s, "hpc", "2026-11-20", "2")
	now := contentAt(t, s, "hpc", "2026-12-01", "3")
	other := contentAt(t, s, "raw", "2026-07-01", "4")
	derived := sample("hpc", []byte("derived"))
	derived.Base, derived.Added, derived.Created = mid.ID, []string{"bc"}, mid.Created.Add(time.Hour)
	derived.ID = contentID(derived.Recipe, derived.Base, derived.Added, derived.Architecture, derived.Packages)
	derived = putImage(t, s, derived, "derived")
	if err := s.setAlias("hpc", alias{ID: now.ID, Recipe: now.Recipe}); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]*muster.Image{
		"hpc":                         now,
		"hpc@2026-06-03":              old, // on that day
		"hpc@2026-11-19":              old,
		"hpc@2026-06":                 old,
		"hpc@2026-11-20":              mid,
		"hpc@2026-11":                 mid, // before the month's end
		"hpc@2026-11-30":              mid, // a derived image is no content of a recipe
		"hpc@2026-12-01":              now,
		"hpc@2031-01-01":              now, // a day to come
		"hpc@" + old.ID.Short():       old,
		"hpc@" + string(mid.ID):       mid,
		"hpc@" + mid.ID.Hex():         mid,
		"raw@2026-07-01":              other,
		"raw@" + other.ID.Short()[:6]: other,
	} {
		if m, err := s.Resolve(ref); err != nil || m.ID != want.ID {
			t.Errorf("%s: %v, %v", ref, m, err)
		}
	}
	for _, c := range []struct {
		ref    string
		code   muster.Code
		reason muster.Reason
		says   string
	}{
		{"hpc@2026-06-02", muster.ENotFound, muster.ReasonNoSuchImage, old.ID.Short() + " (2026-06-03)"},
		{"hpc@2020-01", muster.ENotFound, muster.ReasonNoSuchImage, "hpc@2026-06-03"},
		{"hcp@2026-06-03", muster.ENotFound, muster.ReasonNoSuchImage, `"hpc"`},
		{"raw@" + old.ID.Short(), muster.ENotFound, muster.ReasonNoSuchImage, "muster image versions raw"},
		{"hpc@" + derived.ID.Short(), muster.ENotFound, muster.ReasonNoSuchImage, "muster image versions hpc"},
		{"hpc@2026-11-31", muster.EInvalid, muster.ReasonBadValue, "2026-11-20"},
		{"hpc@last-week", muster.EInvalid, muster.ReasonBadValue, "2026-11-20"},
	} {
		_, err := s.Resolve(c.ref)
		var e *muster.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Reason != c.reason || !strings.Contains(e.Message+e.Hint, c.says) {
			t.Errorf("%s: %v", c.ref, err)
		}
	}
	if list, err := s.Versions("hpc"); err != nil || len(list) != 3 || list[0].ID != now.ID || list[2].ID != old.ID {
		t.Errorf("versions: %v, %v", list, err)
	}
	if list, err := s.Versions("nope"); err != nil || len(list) != 0 {
		t.Errorf("versions: %v, %v", list, err)
	}
	// What is replaced is read again.
	if err := s.Remove(t.Context(), mid.ID, nil); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Resolve("hpc@2026-11"); err != nil || m.ID != old.ID {
		t.Errorf("after removal: %v, %v", m, err)
	}
}

func TestResolveAmbiguousVersion(t *testing.T) {
	t.Parallel()
	var list []Version
	for i := range 7 {
		list = append(list, Version{ID: muster.ImageID(fmt.Sprintf("sha256:abcdef%058x", i)), Name: "hpc", Created: time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)})
	}
	_, err := contentOf(muster.ImageVersion{Name: "hpc", Content: "abcdef"}, list)
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EInvalid || e.Reason != muster.ReasonAmbiguous {
		t.Fatal(err)
	}
	for _, want := range []string{"7 contents", "abcdef000000 (2026-01-01)", "(2026-01-05)", "and 2 more"} {
		if !strings.Contains(e.Message, want) {
			t.Errorf("%q is not in %q", want, e.Message)
		}
	}
}

// The newest of a name, the young, what the name means, what is pinned, used, asked for or
// about to be named stay; the rest goes.
func TestPruneVersions(t *testing.T) {
	t.Parallel()
	s, clock := at(t, "2026-12-15")
	days := []string{"2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01", "2026-05-01", "2026-06-01", "2026-12-01"}
	var list []*muster.Image
	for i, day := range days {
		list = append(list, contentAt(t, s, "hpc", day, fmt.Sprint(i)))
	}
	alone := contentAt(t, s, "raw", "2025-01-01", "raw")
	current, pinned, used, askedFor := list[1], list[2], list[3], list[4]
	if err := s.setAlias("hpc", alias{ID: current.ID, Recipe: current.Recipe}); err != nil { // the recipe went back
		t.Fatal(err)
	}
	if err := s.Pin(pinned.ID, Pin{By: "root", At: clock.Now()}); err != nil {
		t.Fatal(err)
	}
	clock.pass(-30 * time.Minute)
	if _, err := s.ResolveForUse("hpc@" + askedFor.ID.Short()); err != nil {
		t.Fatal(err)
	}
	clock.pass(30 * time.Minute)
	rule := KeepVersions{Newest: 1, For: 30 * 24 * time.Hour}
	inUse := users{used.ID, []string{"c-1"}}
	prune := func(want ...*muster.Image) {
		t.Helper()
		gone, err := s.PruneVersions(t.Context(), rule, inUse)
		if err != nil {
			t.Fatal(err)
		}
		var ids, wanted []muster.ImageID
		for _, m := range gone {
			ids = append(ids, m.ID)
		}
		for _, m := range want {
			wanted = append(wanted, m.ID)
		}
		slices.Sort(ids)
		slices.Sort(wanted)
		if !slices.Equal(ids, wanted) {
			t.Errorf("removed %v, want %v", ids, wanted)
		}
		for _, m := range want {
			if _, err := s.Show(m.ID); muster.CodeOf(err) != muster.ENotFound {
				t.Errorf("%s: %v", m.ID.Short(), err)
			}
		}
	}
	// Somebody builds the image right now, and may be about to give its name to any of them.
	unlock, err := s.lock("recipe-hpc")
	if err != nil {
		t.Fatal(err)
	}
	prune()
	unlock()
	prune(list[0], list[5])
	clock.pass(31 * time.Minute)
	prune(askedFor)
	inUse.by = nil
	prune(used)
	if was, err := s.Unpin(pinned.ID); err != nil || !was {
		t.Errorf("unpinned: %v, %v", was, err)
	}
	if was, err := s.Unpin(pinned.ID); err != nil || was {
		t.Errorf("unpinned again: %v, %v", was, err)
	}
	prune(pinned)
	prune()
	for _, m := range []*muster.Image{current, list[6], alone} {
		if _, err := s.Show(m.ID); err != nil {
			t.Error(err)
		}
	}
}

func TestKeepVersions(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	none := []Kept{}
	for _, c := range []struct {
		k               KeepVersions
		newer           int
		age             time.Duration
		current, pinned bool
		want            []Kept
	}{
		{KeepVersions{}, 0, 0, true, false, []Kept{KeptCurrent, KeptNewest, KeptAge}},
		{KeepVersions{}, 9, 400 * day, false, false, []Kept{KeptNewest}},
		{KeepVersions{}, 10, 179 * day, false, false, []Kept{KeptAge}},
		{KeepVersions{}, 10, 180 * day, false, false, none},
		{KeepVersions{}, 10, 180 * day, false, true, []Kept{KeptPinned}},
		{KeepVersions{Newest: 2, For: -1}, 2, 0, false, false, none},
		{KeepVersions{Newest: 2, For: -1}, 1, 0, false, false, []Kept{KeptNewest}},
	} {
		if got := c.k.Reasons(c.newer, c.age, c.current, c.pinned); !slices.Equal(got, c.want) || got == nil {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestPinned(t *testing.T) {
	t.Parallel()
	s, clock := at(t, "2026-12-15")
	m := contentAt(t, s, "hpc", "2026-06-01", "1")
	want := Pin{By: "ada", At: clock.Now().UTC().Truncate(time.Second), Reason: "release 3 was validated on it"}
	if err := s.Pin(m.ID, want); err != nil {
		t.Fatal(err)
	}
	if pins, err := s.Pins(); err != nil || len(pins) != 1 || pins[m.ID] != want {
		t.Errorf("%+v, %v", pins, err)
	}
	err := s.Remove(t.Context(), m.ID, nil)
	if muster.ReasonOf(err) != muster.ReasonImageInUse || !strings.Contains(err.Error(), "ada") {
		t.Errorf("removed though pinned: %v", err)
	}
	// A damaged pin still pins.
	if err := os.WriteFile(s.pinPath(m.ID), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), m.ID, nil); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("removed though pinned: %v", err)
	}
	if _, err := s.Unpin(m.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), m.ID, nil); err != nil {
		t.Error(err)
	}
	if err := s.Pin(m.ID, want); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("pinned what is not there: %v", err)
	}
}

// meanwhile are users that do something when they are asked.
type meanwhile struct{ do func() }

func (meanwhile) Derived(context.Context) (map[string][]string, error) { return nil, nil }
func (m meanwhile) ImageUsers(context.Context, muster.ImageID) ([]string, error) {
	m.do()
	return nil, nil
}

// Who asks for a content after its users were looked up, and before it is removed, gets it;
// who asks later gets none, and never one that is being removed.
func TestPruneVersionsBesideARequest(t *testing.T) {
	t.Parallel()
	s, _ := at(t, "2026-12-15")
	old := contentAt(t, s, "hpc", "2026-01-01", "1")
	contentAt(t, s, "hpc", "2026-12-01", "2")
	rule := KeepVersions{Newest: 1, For: -1}
	gone, err := s.PruneVersions(t.Context(), rule, meanwhile{func() {
		if _, err := s.ResolveForUse("hpc@2026-01-01"); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || len(gone) != 0 {
		t.Errorf("removed %v, %v", gone, err)
	}
	if err := s.check(old, readAlways); err != nil {
		t.Error(err)
	}
}

// A removal that was interrupted is finished when the store is opened next, and a content
// is never there in part.
func TestPruneVersionsInterrupted(t *testing.T) {
	t.Parallel()
	s, _ := at(t, "2026-12-15")
	old := contentAt(t, s, "hpc", "2026-01-01", "1")
	contentAt(t, s, "hpc", "2026-12-01", "2")
	grave := filepath.Join(s.dir, "tmp", "discarded-x") // as a kill between hiding and deleting leaves it
	if err := os.MkdirAll(grave, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.Path(old.ID), filepath.Join(grave, "image")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve("hpc@2026-01-01"); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("it is found: %v", err)
	}
	again, err := Open(s.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(again.dir, "tmp", "*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if list, err := again.Versions("hpc"); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
