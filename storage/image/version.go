package image

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	muster "github.com/muster-hpc/muster"
)

// Version is one content among those that an image had over time.
type Version struct {
	ID      muster.ImageID
	Name    string
	Created time.Time
}

func (v Version) String() string {
	return fmt.Sprintf("%s (%s)", v.ID.Short(), v.Created.UTC().Format(time.DateOnly))
}

// VersionOf is what of a manifest says which version it is; ok is false for derived images
// and saved roots, which are none.
func VersionOf(m *muster.Image) (v Version, ok bool) {
	return Version{m.ID, m.Name, m.Created}, m.Base == "" && m.Saved == nil
}

// ByAge orders versions, the newest first.
func ByAge(a, b Version) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
}

// knownVersion is what a manifest said, as long as its file is the same.
type knownVersion struct {
	inode   uint64
	size    int64
	changed time.Time
	version Version
	is      bool // it is one
}

// Versions are the contents that an image has in the store, the newest first. It is empty
// for a name that has none.
func (s *Store) Versions(name string) ([]*muster.Image, error) {
	list, err := s.versions(name)
	if err != nil {
		return nil, err
	}
	var out []*muster.Image
	for _, v := range list {
		m, err := s.Show(v.ID)
		if err != nil {
			s.log.Warn("image skipped", "image", v.ID.Short(), "error", err) // removed just now
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

// versions are those of one name, or of all for "", the newest first. A manifest is read
// once: requests that wait name images by their day, and are looked at again and again.
func (s *Store) versions(name string) ([]Version, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make(map[muster.ImageID]knownVersion, len(ids))
	var list []Version
	for _, id := range ids {
		k, ok := s.versionOf(id)
		if !ok {
			continue
		}
		known[id] = k
		if k.is && (name == "" || k.version.Name == name) {
			list = append(list, k.version)
		}
	}
	s.manifests = known
	slices.SortFunc(list, ByAge)
	return list, nil
}

// versionOf reads a manifest unless that is known. s.mu is held.
func (s *Store) versionOf(id muster.ImageID) (knownVersion, bool) {
	st, err := os.Stat(filepath.Join(s.Path(id), manifestFile))
	if err != nil {
		return knownVersion{}, false
	}
	k := knownVersion{size: st.Size(), changed: st.ModTime()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		k.inode = sys.Ino
	}
	if old, ok := s.manifests[id]; ok && old.inode == k.inode && old.size == k.size && old.changed.Equal(k.changed) {
		return old, true
	}
	m, err := s.Show(id)
	if err != nil {
		s.log.Debug("image skipped", "image", id.Short(), "error", err) // List says so
		return k, true
	}
	k.version, k.is = VersionOf(m)
	return k, true
}

// resolveVersion finds the content that v names.
func (s *Store) resolveVersion(v muster.ImageVersion) (muster.ImageID, error) {
	list, err := s.versions(v.Name)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", s.unknown(v.Name)
	}
	a, _ := s.alias(v.Name)
	return ChooseVersion(v, list, a.ID, s.clock.Now())
}

// ChooseVersion finds the content that v names among those of its image, which are in list,
// the newest first. current is what the name alone means: a day to come means that, too.
func ChooseVersion(v muster.ImageVersion, list []Version, current muster.ImageID, now time.Time) (muster.ImageID, error) {
	switch {
	case len(list) == 0:
		return "", muster.Errorf(muster.ENotFound, "there is no image %q", clip(v.Name)).Because(muster.ReasonNoSuchImage).WithHint("`muster image list` lists them")
	case v.Content != "":
		return contentOf(v, list)
	case v.Before.After(now) && current != "":
		return current, nil
	}
	for _, x := range list {
		if x.Created.Before(v.Before) {
			return x.ID, nil
		}
	}
	oldest := list[len(list)-1]
	return "", muster.Errorf(muster.ENotFound, "image %s has no content that was built by %s: its oldest is %s", v.Name, v.Before.AddDate(0, 0, -1).Format(time.DateOnly), oldest).
		Because(muster.ReasonNoSuchImage).WithHint("write %s@%s, or see `muster image versions %s`", v.Name, oldest.Created.UTC().Format(time.DateOnly), v.Name)
}

// contentOf finds the one version whose ID begins as v says.
func contentOf(v muster.ImageVersion, list []Version) (muster.ImageID, error) {
	var found []Version
	for _, x := range list {
		if strings.HasPrefix(x.ID.Hex(), v.Content) {
			found = append(found, x)
		}
	}
	switch len(found) {
	case 0:
		return "", muster.Errorf(muster.ENotFound, "no content of image %s has an ID that begins with %s", v.Name, clip(v.Content)).Because(muster.ReasonNoSuchImage).
			WithHint("`muster image versions %s` lists its contents; a day is written %s@2026-11-20", v.Name, v.Name)
	case 1:
		return found[0].ID, nil
	}
	const shown = 5
	var words []string
	for _, x := range found[:min(shown, len(found))] {
		words = append(words, x.String())
	}
	if more := len(found) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return "", muster.Errorf(muster.EInvalid, "%d contents of image %s begin with %s: %s", len(found), v.Name, clip(v.Content), strings.Join(words, ", ")).
		Because(muster.ReasonAmbiguous).WithHint("give more digits")
}

// asked is how long a content stays after somebody asked for it in order to use it: the
// record of what uses it may not be written yet.
const asked = time.Hour

// ResolveForUse is Resolve for whoever is about to record that it uses the image: old
// contents are not removed within the next hour.
func (s *Store) ResolveForUse(ref string) (*muster.Image, error) {
	for {
		m, err := s.Resolve(ref)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.asked[m.ID] = s.clock.Now()
		s.mu.Unlock()
		// It may have been removed before that was noted.
		if _, err := os.Lstat(s.Path(m.ID)); err == nil {
			return m, nil
		}
	}
}
