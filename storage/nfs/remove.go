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

// Remove ends the ganesha of a directory that no Server uses any more, and removes the
// directory.
func Remove(dir string) error {
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
