package image

import (
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
// that is left, or nothing. It returns EConflict while somebody uses the image.
// users may be nil where there are no clusters.
func (s *Store) Remove(ctx context.Context, id muster.ImageID, users Users) error {
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
	if users != nil {
		by, err := users.ImageUsers(ctx, id)
		if err != nil {
			return err
		}
		if len(by) > 0 {
			return muster.Errorf(muster.EConflict, "image %s is in use by %s", id.Short(), strings.Join(by, ", ")).Because(muster.ReasonImageInUse).
				WithHint("delete these clusters first")
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
	if err := s.discard(filepath.Join(s.dir, id.Hex())); err != nil {
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
