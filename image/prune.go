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
}

// DefaultKeep keeps what is asked for again and again.
func DefaultKeep() Keep { return Keep{For: 14 * 24 * time.Hour, Most: 50} }

// justDerived is how long an image stays in any case: its cluster may not say yet that
// it uses it.
const justDerived = time.Hour

// Prune removes derived images that no cluster has used for long, or that are too many.
// It returns those that it removed. Deriving one again takes as long as it took before.
func (s *Store) Prune(ctx context.Context, k Keep, users Users) ([]muster.ImageID, error) {
	d := DefaultKeep()
	k.For, k.Most = cmp.Or(k.For, d.For), cmp.Or(k.Most, d.Most)
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	used, files := s.derivedUse()
	list = slices.DeleteFunc(list, func(m *muster.Image) bool { return m.Base == "" })
	last := func(m *muster.Image) time.Time {
		if at, ok := used[m.ID]; ok {
			return at
		}
		return m.Created
	}
	slices.SortFunc(list, func(a, b *muster.Image) int { return last(b).Compare(last(a)) })
	var gone []muster.ImageID
	var all error
	for i, m := range list {
		if age := s.clock.Now().Sub(last(m)); age < justDerived || age < k.For && i-len(gone) < k.Most {
			continue
		}
		removed, err := s.removeUnused(ctx, m.ID, files[m.ID], last(m), users)
		switch {
		case muster.CodeOf(err) == muster.EConflict:
			for _, f := range files[m.ID] { // in use until now
				all = errors.Join(all, os.Chtimes(f, s.clock.Now(), s.clock.Now()))
			}
		case err != nil:
			all = errors.Join(all, err)
		case removed:
			gone = append(gone, m.ID)
			s.log.Info("a derived image that nobody used is removed", "image", m.ID.Short(), "base", m.Name, "packages", m.Added, "used", last(m))
		}
	}
	return gone, all
}

// removeUnused removes a derived image unless somebody asks for it, or has since last:
// who asked holds the locks of its files meanwhile, and has no cluster yet that uses it.
func (s *Store) removeUnused(ctx context.Context, id muster.ImageID, files []string, last time.Time, users Users) (bool, error) {
	for _, f := range files {
		brief, cancel := context.WithTimeout(ctx, time.Second)
		unlock, err := s.lockContext(brief, "derived-"+strings.TrimSuffix(filepath.Base(f), ".json"), nil)
		cancel()
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return false, nil
		case err != nil:
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

// derivedUse tells when each derived image was last asked for, and the files that
// remember what it was derived from.
func (s *Store) derivedUse() (used map[muster.ImageID]time.Time, files map[muster.ImageID][]string) {
	used, files = map[muster.ImageID]time.Time{}, map[muster.ImageID][]string{}
	paths, _ := filepath.Glob(filepath.Join(s.dir, "derived", "*.json"))
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		a, err := aliasDoc.Decode(p, data)
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
