package image

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	muster "github.com/muster-hpc/muster"
)

// KeepVersions says which contents of an image stay that nobody uses and that are not
// pinned: the newest of each name, and those that are young. Zero fields take the values of
// DefaultKeepVersions.
type KeepVersions struct {
	Newest int           // of each name
	For    time.Duration // since a content was built; negative: age keeps none
}

// DefaultKeepVersions keeps half a year, and ten contents of images that are seldom built.
func DefaultKeepVersions() KeepVersions { return KeepVersions{Newest: 10, For: 180 * 24 * time.Hour} }

// WithDefaults fills what is open.
func (k KeepVersions) WithDefaults() KeepVersions {
	d := DefaultKeepVersions()
	return KeepVersions{cmp.Or(k.Newest, d.Newest), cmp.Or(k.For, d.For)}
}

// Kept is why a content stays.
type Kept string

// Reasons why contents stay.
const (
	KeptCurrent Kept = "current" // its name means it
	KeptInUse   Kept = "in-use"
	KeptPinned  Kept = "pinned"
	KeptNewest  Kept = "newest" // one of the newest of its name
	KeptAge     Kept = "age"    // young
)

// Reasons are why the rule keeps a content, of which so many of its name are newer; none: it
// may go. Whether it is in use is not looked at.
func (k KeepVersions) Reasons(newer int, age time.Duration, current, pinned bool) []Kept {
	k = k.WithDefaults()
	out := []Kept{}
	add := func(why Kept, is bool) {
		if is {
			out = append(out, why)
		}
	}
	add(KeptCurrent, current)
	add(KeptPinned, pinned)
	add(KeptNewest, newer < k.Newest)
	add(KeptAge, age < k.For)
	return out
}

// PruneVersions removes contents that nothing keeps, and returns what it removed. What
// somebody uses stays, and so does what was asked for within the last hour. A crash leaves
// each of them complete or not at all.
func (s *Store) PruneVersions(ctx context.Context, k KeepVersions, users Users) (gone []muster.Image, failed error) {
	all, err := s.versions("")
	if err != nil {
		return nil, err
	}
	pins, err := s.Pins()
	if err != nil {
		return nil, err
	}
	s.forgetAsked()
	names, now := s.Names(), s.clock.Now()
	newer := map[string]int{}
	for _, v := range all {
		n := newer[v.Name]
		newer[v.Name]++
		_, pinned := pins[v.ID]
		if len(k.Reasons(n, now.Sub(v.Created), names[v.Name] == v.ID, pinned)) > 0 {
			continue
		}
		m, err := s.Show(v.ID)
		if err == nil {
			var removed bool
			if removed, err = s.pruneVersion(ctx, v, users); removed {
				gone = append(gone, *m)
				s.log.Info("old image content removed", "image", v.Name, "content", v.ID.Short(), "built", v.Created)
			}
		}
		if code := muster.CodeOf(err); err != nil && code != muster.EConflict && code != muster.ENotFound {
			failed = errors.Join(failed, err)
		}
		if ctx.Err() != nil {
			return gone, errors.Join(failed, ctx.Err())
		}
	}
	return gone, failed
}

// pruneVersion removes a content unless it is what a builder is about to give its name to.
func (s *Store) pruneVersion(ctx context.Context, v Version, users Users) (bool, error) {
	unlock, ok, err := s.lockBriefly(ctx, "recipe-"+v.Name)
	if !ok {
		return false, err // the next time
	}
	defer unlock()
	if s.Names()[v.Name] == v.ID {
		return false, nil
	}
	if err := s.remove(ctx, v.ID, users, true); err != nil {
		return false, err
	}
	return true, nil
}

// forgetAsked forgets who asked long ago.
func (s *Store) forgetAsked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	maps.DeleteFunc(s.asked, func(_ muster.ImageID, at time.Time) bool { return now.Sub(at) >= asked })
}
