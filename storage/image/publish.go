package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
)

// publish makes the finished directory at from the image m.ID, in one step:
// after a crash the image is there complete or not at all. When a sound image
// of that ID is there already it stays, because machines may run from it, and
// its manifest is returned.
func (s *Store) publish(from string, m *muster.Image) (*muster.Image, error) {
	data, err := EncodeManifest(m)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Replace(filepath.Join(from, manifestFile), data, 0o600); err != nil {
		return nil, storeError("write the manifest", err)
	}
	for _, f := range m.Files {
		if err := seal(filepath.Join(from, f.Name)); err != nil {
			return nil, storeError("write image file "+f.Name, err)
		}
	}
	if err := atomicfile.SyncDir(from); err != nil {
		return nil, storeError("publish the image", err)
	}
	unlock, err := s.lock("publish") // short: two builders may end with one ID
	if err != nil {
		return nil, err
	}
	defer unlock()
	to := s.Path(m.ID)
	if old, err := s.Show(m.ID); err == nil {
		if bad := s.check(old, readAlways); bad == nil {
			return old, nil
		}
	}
	if _, err := os.Lstat(to); err == nil {
		if err := s.discard(to); err != nil {
			return nil, storeError("replace a broken image", err)
		}
	}
	if err := os.Rename(from, to); err != nil {
		return nil, storeError("publish the image", err)
	}
	if err := atomicfile.SyncDir(s.dir); err != nil {
		return nil, storeError("publish the image", err)
	}
	s.rememberSound(m)
	return m, nil
}

// discard takes a directory out of sight in one step and then deletes it.
// Machines that run from its files keep them open and are not disturbed.
func (s *Store) discard(dir string) error {
	_, err := s.discardIf(dir, func() bool { return true })
	return err
}

// discardIf does so if may, which is called under s.mu, says yes at that moment.
func (s *Store) discardIf(dir string, may func() bool) (hidden bool, _ error) {
	grave, err := s.newWorkspace("discarded")
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	if hidden = may(); hidden {
		err = os.Rename(dir, grave.path("image"))
	}
	s.mu.Unlock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return hidden, errors.Join(err, grave.close())
	}
	if err := atomicfile.SyncDir(s.dir); err != nil {
		return hidden, errors.Join(err, grave.close())
	}
	return hidden, grave.close()
}

// seal makes a file read-only and durable.
func seal(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(0o400); err != nil {
		return err
	}
	return f.Sync()
}
