package image

import (
	"os"
	"path/filepath"
	"syscall"
)

// workspace is a directory for one build. Its lock file is held as long as the
// builder lives, so that others can tell a workspace in use from one that a
// killed builder left.
type workspace struct {
	dir  string
	hold *os.File
}

const holdFile = "in-use"

func (s *Store) newWorkspace(what string) (*workspace, error) {
	// Under the sweep's lock: it must not find the directory before it is held.
	unlock, err := s.lock("sweep")
	if err != nil {
		return nil, err
	}
	defer unlock()
	dir, err := os.MkdirTemp(filepath.Join(s.dir, "tmp"), what+"-")
	if err != nil {
		return nil, storeError("make room for a build", err)
	}
	hold, err := os.OpenFile(filepath.Join(dir, holdFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(hold.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		return nil, storeError("make room for a build", err)
	}
	// The root file system below must be reachable for the accounts that
	// packages run as; the store above keeps strangers out.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, storeError("make room for a build", err)
	}
	return &workspace{dir: dir, hold: hold}, nil
}

func (w *workspace) path(name string) string { return filepath.Join(w.dir, name) }

// close deletes the workspace. Mounts cannot be in the way: they were made in
// mount namespaces that ended with their processes.
func (w *workspace) close() error {
	err := os.RemoveAll(w.dir)
	_ = w.hold.Close()
	return err
}

// sweep deletes what killed builders left. What it cannot delete now it leaves
// for the next time.
func (s *Store) sweep() {
	unlock, err := s.lock("sweep")
	if err != nil {
		return
	}
	defer unlock()
	entries, err := os.ReadDir(filepath.Join(s.dir, "tmp"))
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(s.dir, "tmp", e.Name())
		hold, err := os.OpenFile(filepath.Join(dir, holdFile), os.O_RDWR, 0)
		if err == nil && syscall.Flock(int(hold.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = hold.Close() // its builder lives
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			s.log.Warn("removing stale build failed", "dir", dir, "error", err)
		} else {
			s.log.Info("stale build removed", "dir", dir)
		}
		if hold != nil {
			_ = hold.Close()
		}
	}
}
