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

// Users tells who uses an image: IDs of clusters, as people know them.
type Users interface {
	ImageUsers(ctx context.Context, id muster.ImageID) ([]string, error)
}

// Remove deletes an image and the names that mean it. It returns EConflict
// while somebody uses it. users may be nil where there are no clusters.
func (s *Store) Remove(ctx context.Context, id muster.ImageID, users Users) error {
	if !hexDigest.MatchString(id.Hex()) {
		return muster.Errorf(muster.EInvalid, "%q is not a content ID", clip(string(id)))
	}
	if _, err := os.Lstat(s.Path(id)); errors.Is(err, fs.ErrNotExist) {
		return muster.Errorf(muster.ENotFound, "image %s is not in the store", id.Short()).WithHint("see what is there: muster image list")
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
			return muster.Errorf(muster.EConflict, "image %s is in use by %s", id.Short(), strings.Join(by, ", ")).
				WithHint("delete these clusters first")
		}
	}
	// Names first: a crash in between leaves an image without a name, not a
	// name without an image.
	for name, means := range s.Names() {
		if means == id {
			if err := os.Remove(s.aliasPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
