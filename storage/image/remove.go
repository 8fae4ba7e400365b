package image

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	muster "github.com/muster-hpc/muster"
)

// Users reports who uses images.
type Users interface {
	// ImageUsers are the clusters that use an image: IDs, as people know them.
	ImageUsers(ctx context.Context, id muster.ImageID) ([]string, error)
	// Derived are, for each project, the derived images that its clusters have or wait
	// for, as DerivedKey names them.
	Derived(ctx context.Context) (map[string][]string, error)
}

// Remove deletes an image. Its name then means the newest image of that name
// that is left, or nothing. It returns EConflict while somebody uses the image, or it is
// pinned. users may be nil where there are no clusters.
func (s *Store) Remove(ctx context.Context, id muster.ImageID, users Users) error {
	return s.remove(ctx, id, users, false)
}

// remove is Remove. With unlessAsked, what somebody is about to use stays, too.
func (s *Store) remove(ctx context.Context, id muster.ImageID, users Users, unlessAsked bool) error {
	if !hexDigest.MatchString(id.Hex()) {
		return muster.Errorf(muster.EInvalid, "%q is not a content ID", clip(string(id))).Because(muster.ReasonBadValue)
	}
	if _, err := os.Lstat(s.Path(id)); errors.Is(err, fs.ErrNotExist) {
		return muster.Errorf(muster.ENotFound, "image %s is not in the store", id.Short()).Because(muster.ReasonNoSuchImage).WithHint("see what is there: muster image list")
	}
	unlock, err := s.lockContext(ctx, "publish", nil)
	if err != nil {
		return err
	}
	defer unlock()
	if p, pinned := s.pin(id); pinned {
		return muster.Errorf(muster.EConflict, "image %s is pinned by %s", id.Short(), cmp.Or(p.By, "somebody")).Because(muster.ReasonImageInUse).
			WithHint("unpin it first: muster image unpin %s", id.Short())
	}
	if users != nil {
		by, err := users.ImageUsers(ctx, id)
		if err != nil {
			return err
		}
		if len(by) > 0 {
			return muster.Errorf(muster.EConflict, "image %s is in use by %s", id.Short(), strings.Join(by, ", ")).Because(muster.ReasonImageInUse).
				WithHint("delete these first")
		}
	}
	// Names first: a crash in between leaves an image without a name, not a
	// name without an image.
	for name, means := range s.Names() {
		if means == id {
			if err := s.passOn(name, id); err != nil {
				return storeError("remove image "+id.Short(), err)
			}
		}
	}
	s.forget(id)
	may := func() bool { return true }
	if unlessAsked {
		// Whoever asked an hour ago has recorded that it uses the image, which users knows.
		may = func() bool { return s.clock.Now().Sub(s.asked[id]) >= asked }
	}
	switch hidden, err := s.discardIf(filepath.Join(s.dir, id.Hex()), may); {
	case err == nil && !hidden:
		return muster.Errorf(muster.EConflict, "somebody is about to use image %s", id.Short()).Because(muster.ReasonImageInUse).WithHint("try it again in an hour")
	case err != nil:
		return storeError("remove image "+id.Short(), err)
	}
	return nil
}

// passOn makes a name mean the newest of its images but one, or nothing when
// there is no other.
func (s *Store) passOn(name string, but muster.ImageID) error {
	list, err := s.List()
	if err != nil {
		return err
	}
	var newest *muster.Image
	for _, m := range list {
		if m.Name == name && m.Base == "" && m.Saved == nil && m.ID != but && (newest == nil || m.Created.After(newest.Created)) {
			newest = m
		}
	}
	if newest != nil {
		return s.setAlias(name, alias{ID: newest.ID, Recipe: newest.Recipe, Built: newest.Created})
	}
	if err := os.Remove(s.aliasPath(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
