package image

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	muster "github.com/muster-hpc/muster"
)

// Keep says which derived images stay though no cluster uses them. Zero fields take
// the values of DefaultKeep.
type Keep struct {
	For  time.Duration // since the last cluster had it
	Most int           // of those, the ones that were used last
	// PerProject is how many derived images one project has, used or not: its unused ones
	// make room for new ones. An image that several asked for counts for each of them.
	PerProject int
}

// DefaultKeep keeps what is asked for again and again. One project keeps a fifth at most.
func DefaultKeep() Keep { return Keep{For: 14 * 24 * time.Hour, Most: 50, PerProject: 10} }

func (k Keep) withDefaults() Keep {
	d := DefaultKeep()
	return Keep{cmp.Or(k.For, d.For), cmp.Or(k.Most, d.Most), cmp.Or(k.PerProject, d.PerProject)}
}

// justDerived is how long an image stays in any case: its cluster may not say yet that
// it uses it.
const justDerived = time.Hour

// Prune removes derived images that no cluster has used for long, or that are too many, of
// one project or of all. It returns those that it removed. Deriving one again takes as
// long as it took before.
func (s *Store) Prune(ctx context.Context, k Keep, users Users) ([]muster.ImageID, error) {
	k = k.withDefaults()
	wanted := map[string][]string{}
	if users != nil {
		var err error
		if wanted, err = users.Derived(ctx); err != nil {
			return nil, err
		}
	}
	gone, failed := s.pruneClaims(ctx, k, wanted, users)
	more, err := s.pruneOld(ctx, k, s.have(wanted), users)
	return append(gone, more...), errors.Join(failed, err)
}

// pruneClaims makes projects claim what their clusters have, and lets go of what they have
// beyond their share, or have not used for long.
func (s *Store) pruneClaims(ctx context.Context, k Keep, wanted map[string][]string, users Users) (gone []muster.ImageID, failed error) {
	failed = s.renew(ctx, wanted)
	projects := map[string]bool{}
	for _, d := range s.derivations() {
		for p := range d.Projects {
			projects[p] = true
		}
	}
	for p := range projects {
		removed, err := s.release(ctx, p, wanted[p], k, users)
		gone, failed = append(gone, removed...), errors.Join(failed, err)
	}
	return gone, failed
}

// pruneOld removes the images that were not used for long, and those beyond the ones that
// were used last. Those in use are not counted.
func (s *Store) pruneOld(ctx context.Context, k Keep, inUse map[muster.ImageID]bool, users Users) (gone []muster.ImageID, failed error) {
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	used, files := s.derivedUse()
	list = slices.DeleteFunc(list, func(m *muster.Image) bool { return m.Base == "" || inUse[m.ID] })
	last := func(m *muster.Image) time.Time {
		if at, ok := used[m.ID]; ok {
			return at
		}
		return m.Created
	}
	slices.SortFunc(list, func(a, b *muster.Image) int { return last(b).Compare(last(a)) })
	for i, m := range list {
		if age := s.clock.Now().Sub(last(m)); age < justDerived || age < k.For && i-len(gone) < k.Most {
			continue
		}
		removed, err := s.removeUnused(ctx, m.ID, files[m.ID], last(m), users)
		switch {
		case muster.CodeOf(err) == muster.EConflict:
			for _, f := range files[m.ID] { // in use until now
				failed = errors.Join(failed, os.Chtimes(f, s.clock.Now(), s.clock.Now()))
			}
		case err != nil:
			failed = errors.Join(failed, err)
		case removed:
			gone = append(gone, m.ID)
			s.log.Info("derived image removed: unused", "image", m.ID.Short(), "base", m.Name, "packages", m.Added, "used", last(m))
		}
	}
	return gone, failed
}

// have are the images of keys that are wanted.
func (s *Store) have(wanted map[string][]string) map[muster.ImageID]bool {
	out := map[muster.ImageID]bool{}
	for _, keys := range wanted {
		for _, key := range keys {
			if d, ok := s.derivation(key); ok {
				out[d.ID] = true
			}
		}
	}
	return out
}

// removeUnused removes a derived image unless somebody asks for it, or has since last:
// who asked holds the locks of its files meanwhile, and has no cluster yet that uses it.
func (s *Store) removeUnused(ctx context.Context, id muster.ImageID, files []string, last time.Time, users Users) (bool, error) {
	for _, f := range files {
		unlock, ok, err := s.lockBriefly(ctx, "derived-"+strings.TrimSuffix(filepath.Base(f), ".json"))
		if !ok {
			return false, err
		}
		defer unlock()
		if st, err := os.Stat(f); err == nil && st.ModTime().After(last) {
			return false, nil
		}
	}
	if err := s.Remove(ctx, id, users); err != nil {
		return false, err
	}
	var all error
	for _, f := range files {
		all = errors.Join(all, os.Remove(f))
	}
	return all == nil, all
}

// derivedUse reports when each derived image was last asked for, and the files that
// remember what it was derived from.
func (s *Store) derivedUse() (used map[muster.ImageID]time.Time, files map[muster.ImageID][]string) {
	used, files = map[muster.ImageID]time.Time{}, map[muster.ImageID][]string{}
	paths, _ := filepath.Glob(filepath.Join(s.dir, "derived", "*.json"))
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		a, err := derivationDoc.Decode(p, data)
		if err != nil {
			continue // nothing was derived, as far as is known: see derived
		}
		files[a.ID] = append(files[a.ID], p)
		if st, err := os.Stat(p); err == nil && st.ModTime().After(used[a.ID]) {
			used[a.ID] = st.ModTime()
		}
	}
	return used, files
}
