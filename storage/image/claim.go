package image

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/document"
)

// derivation is which image a base with more packages became, and who asked for it: a
// project's claim, until its clusters have not had the image for long, or it wants the
// place for another.
type derivation struct {
	ID     muster.ImageID `json:"id"`
	Recipe string         `json:"recipe"` // hash that its base was built from
	Built  time.Time      `json:"built"`
	// Projects are those that asked, and when each last did or had it.
	Projects map[string]time.Time `json:"projects,omitempty"`
}

const derivationDoc document.Kind[derivation] = "derived-image/1"

// Asker is on whose behalf an image is derived.
type Asker struct {
	Project string // "": nobody's
	Keep    Keep   // what the project may have; its unused images make room
	Users   Users
}

// DerivedKey names what a base with more packages is, before it is there; "" where the
// base has them all. Of an image that is derived itself it is that image's.
func DerivedKey(base *muster.Image, packages []string) string {
	if base.Base != "" {
		return derivedKey(base.Base, base.Added)
	}
	added := missing(base, packages)
	if len(added) == 0 {
		return ""
	}
	return derivedKey(base.ID, added)
}

// Askers are the projects that asked for each derived image, sorted.
func (s *Store) Askers() map[muster.ImageID][]string {
	out := map[muster.ImageID][]string{}
	for _, d := range s.derivations() {
		out[d.ID] = slices.Sorted(maps.Keys(d.Projects))
	}
	return out
}

// derivations are those whose image is there, by key.
func (s *Store) derivations() map[string]derivation {
	out := map[string]derivation{}
	paths, _ := filepath.Glob(filepath.Join(s.dir, "derived", "*.json"))
	for _, p := range paths {
		key := strings.TrimSuffix(filepath.Base(p), ".json")
		if d, ok := s.derivation(key); ok {
			out[key] = d
		}
	}
	return out
}

func (s *Store) derivation(key string) (d derivation, ok bool) {
	data, err := os.ReadFile(s.derivedPath(key))
	if err != nil {
		return d, false
	}
	// A note that is damaged, or of another version, is none: the image is derived again.
	if d, err = derivationDoc.Decode(s.derivedPath(key), data); err != nil || !hexDigest.MatchString(d.ID.Hex()) {
		return d, false
	}
	_, err = os.Lstat(s.Path(d.ID))
	return d, err == nil
}

// noteDerived writes a derivation down. Its lock is held.
func (s *Store) noteDerived(key string, d derivation) error {
	data, err := derivationDoc.Encode(&d)
	if err == nil {
		err = atomicfile.Replace(s.derivedPath(key), data, 0o600)
	}
	if err != nil {
		return storeError("remember the derived image", err)
	}
	return nil
}

// claim notes that a project asked for a derived image, or has it. The time of the file
// says so, too: see Prune. Its lock is held.
func (s *Store) claim(key, project string) error {
	d, ok := s.derivation(key)
	if !ok {
		return nil // it is gone, and made anew when it is asked for
	}
	if project != "" {
		if d.Projects == nil {
			d.Projects = map[string]time.Time{}
		}
		d.Projects[project] = s.clock.Now().UTC()
	}
	if err := s.noteDerived(key, d); err != nil {
		return err
	}
	now := s.clock.Now()
	return os.Chtimes(s.derivedPath(key), now, now)
}

// makeRoom lets images of a project go that none of its clusters use, those used least
// lately first, so that it has room for one more. What is wanted of it is not bounded
// here: whoever admits requests does that.
func (s *Store) makeRoom(ctx context.Context, key string, who Asker) error {
	if who.Project == "" || who.Users == nil {
		return nil
	}
	wanted, err := who.Users.Derived(ctx)
	if err != nil {
		return err
	}
	_, err = s.release(ctx, who.Project, append(wanted[who.Project], key), who.Keep, who.Users)
	return err
}

// release ends claims of a project that are beyond what it may keep, and removes images
// that nobody claims then. Those that are wanted stay, and take places.
func (s *Store) release(ctx context.Context, project string, wanted []string, k Keep, users Users) ([]muster.ImageID, error) {
	k = k.withDefaults()
	all := s.derivations()
	taken := map[string]bool{}
	for _, key := range wanted {
		taken[key] = true
	}
	var unused []string
	for key, d := range all {
		if _, ok := d.Projects[project]; ok && !taken[key] {
			unused = append(unused, key)
		}
	}
	last := func(key string) time.Time { return all[key].Projects[project] }
	slices.SortFunc(unused, func(a, b string) int { return cmp.Or(last(b).Compare(last(a)), cmp.Compare(a, b)) })
	var gone []muster.ImageID
	var failed error
	room := k.PerProject - len(taken)
	for i, key := range unused {
		if i < room && s.clock.Now().Sub(last(key)) < k.For {
			continue
		}
		removed, err := s.disclaim(ctx, key, project, last(key), users)
		failed = errors.Join(failed, err)
		if removed {
			gone = append(gone, all[key].ID)
		}
	}
	return gone, failed
}

// disclaim ends the claim of a project that was last renewed at last, and removes the
// image if it was the only one.
func (s *Store) disclaim(ctx context.Context, key, project string, last time.Time, users Users) (removed bool, err error) {
	unlock, ok, err := s.lockBriefly(ctx, "derived-"+key)
	if !ok {
		return false, err // somebody asks for it right now
	}
	used, left := time.Time{}, 0
	err = func() error {
		defer unlock()
		d, ok := s.derivation(key)
		if at, claimed := d.Projects[project]; !ok || !claimed || !at.Equal(last) {
			return nil
		}
		st, err := os.Stat(s.derivedPath(key))
		if err != nil {
			return storeError("remember the derived image", err)
		}
		delete(d.Projects, project)
		used, left = st.ModTime(), len(d.Projects)
		if err := s.noteDerived(key, d); err != nil {
			return err
		}
		return os.Chtimes(s.derivedPath(key), used, used) // this is no use of it
	}()
	if err != nil || used.IsZero() || left > 0 {
		return false, err
	}
	d, _ := s.derivation(key)
	removed, err = s.removeUnused(ctx, d.ID, []string{s.derivedPath(key)}, used, users)
	if muster.CodeOf(err) == muster.EConflict {
		return false, nil // a cluster has it that did not ask for it: it names the image itself
	}
	if removed {
		s.log.Info("derived image removed: project limit", "image", d.ID.Short(), "project", project, "used", last)
	}
	return removed, err
}

// renew makes every project claim what its clusters have.
func (s *Store) renew(ctx context.Context, wanted map[string][]string) error {
	var all error
	for project, keys := range wanted {
		for _, key := range keys {
			d, there := s.derivation(key)
			if !there || s.clock.Now().Sub(d.Projects[project]) < renewEvery {
				continue
			}
			unlock, ok, err := s.lockBriefly(ctx, "derived-"+key)
			if ok {
				err = s.claim(key, project)
				unlock()
			}
			all = errors.Join(all, err)
		}
	}
	return all
}

// renewEvery is how often a claim in use is written down again: a fraction of the least
// time that one is kept for.
const renewEvery = 10 * time.Minute
