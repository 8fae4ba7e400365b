package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/muster-hpc/muster"
)

// homes keeps the shared home of each cluster as a directory of the host. It
// is mounted into every node with that machine's UID mapping, so owners on
// disk are the numbers that users have inside.
type homes struct{ dir string }

// Ensure makes the home of a cluster and returns its path.
func (h homes) Ensure(_ context.Context, id muster.ClusterID) (string, error) {
	path := filepath.Join(h.dir, string(id), "home")
	// The parent is closed to everybody: a setuid program that root of a node
	// leaves in the home must not be reachable on the host.
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return path, os.Chmod(path, 0o755)
}

// Remove erases the home of a cluster.
func (h homes) Remove(_ context.Context, id muster.ClusterID) error {
	return os.RemoveAll(filepath.Join(h.dir, string(id)))
}
