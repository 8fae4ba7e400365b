package nfs

import (
	"errors"
	"os"
	"path/filepath"
)

// Destroy ends ganesha and forgets what was exported. Clients that still have
// something mounted wait for it.
func (s *Server) Destroy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.state = false, state{}
	if s.child != nil {
		if err := s.child.stop(grace); err != nil {
			return err
		}
		s.drop()
	}
	return Remove(s.cfg.Dir)
}

// Remove ends the ganesha of a directory that no Server uses any more, and those of clusters below it, and removes the
// directory.
func Remove(dir string) error {
	if err := removeOwn(filepath.Join(dir, OwnDir)); err != nil {
		return err
	}
	c, err := find(filepath.Join(dir, "pid"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err == nil {
		defer c.close()
		if err := c.stop(grace); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// removeOwn ends the servers of clusters in a directory that no Own uses any more, and removes it.
func removeOwn(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if e.IsDir() {
			err = errors.Join(err, Remove(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
