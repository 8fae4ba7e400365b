package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/lockfile"
)

// state is the directory of one server, locked while the server runs.
type state struct {
	dir  string
	lock *lockfile.Lock
}

// openState makes the directory if need be and takes its lock, so that two
// servers never drive the same machines.
func openState(ctx context.Context, dir string) (*state, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "the state directory %s cannot be made", dir).Because(muster.ReasonDirectoryUnusable).
			WithHint("choose another with --state, or run it as root").Wrap(err)
	}
	// Somebody may have made it by hand: volumes and secrets are in it.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, muster.Errorf(muster.EForbidden, "the state directory %s belongs to somebody else", dir).Because(muster.ReasonInsecureFile).
			WithHint("choose another with --state").Wrap(err)
	}
	lock, err := lockfile.Take(ctx, filepath.Join(dir, "lock"))
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held) && held.PID != 0:
		return nil, muster.Errorf(muster.EConflict, "another server uses %s: process %d", dir, held.PID).Because(muster.ReasonServerRunning).
			WithHint("stop it, or choose another directory with --state")
	case errors.As(err, &held):
		return nil, muster.Errorf(muster.EConflict, "another server uses %s", dir).Because(muster.ReasonServerRunning).
			WithHint("find it with `fuser -v %s` and stop it, or choose another directory with --state", held.Path)
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, muster.Errorf(muster.EUnavailable, "cannot write in %s", dir).Because(muster.ReasonDirectoryUnusable).
			WithHint("is the disk full or read-only?").Wrap(err)
	}
	return &state{dir: dir, lock: lock}, nil
}

func (s *state) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// reserve is how much of the file system must be free for new clusters. What
// is below it is for giving back, which must work whatever users wrote.
const (
	reserve      = 48 << 20 // bytes; a scheduler's state begins with 30 MiB
	reserveFiles = 1024     // where files are counted
)

// room reports why no new cluster can be taken, or nil. Volumes with a
// file system of their own do not count: they are the users', to fill or not.
func (s *state) room() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.dir, &fs); err != nil {
		return muster.Errorf(muster.EUnavailable, "the state directory cannot be looked at").Because(muster.ReasonDirectoryUnusable).
			WithHint("ask the operator to look for disk errors with dmesg").Wrap(err)
	}
	if int64(fs.Bavail)*fs.Bsize < reserve || fs.Files > 0 && fs.Ffree < reserveFiles {
		return muster.Errorf(muster.EUnavailable, "the disk of the state directory is full; nothing was changed").Because(muster.ReasonDiskFull).
			WithHint("erase volumes that nobody needs (`muster volume list`, `muster delete --erase`), or ask the operator to free some space on it")
	}
	return nil
}

// homeFree is how many bytes are free where homes lie; -1 if nobody knows.
func (s *state) homeFree() int64 {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.path("volumes"), &fs); err != nil {
		return -1
	}
	return int64(fs.Bavail) * fs.Bsize
}

// close gives the directory free. The kernel does it too when we are killed.
func (s *state) close() error { return s.lock.Close() }
