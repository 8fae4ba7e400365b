package pki

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
)

// maxFile bounds what is read of a key file.
const maxFile = 64 << 10

// privateDir makes a directory that only its owner can enter, or checks that
// it is one.
func privateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return keyError(dir, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return keyError(dir, err)
	}
	if !info.IsDir() {
		return muster.Errorf(muster.EInvalid, "%s is not a directory", dir).WithHint("give a directory for the keys")
	}
	return checkMode(dir, info, "700")
}

// checkMode refuses what others can read or what belongs to another user.
func checkMode(path string, info os.FileInfo, want string) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return muster.Errorf(muster.EInvalid, "others can read keys: %s has mode %04o", path, mode).Because(muster.ReasonInsecureFile).
			WithHint("chmod %s %s; if others use this computer, replace the keys too", want, path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return muster.Errorf(muster.EInvalid, "keys belong to another user: %s has owner %d", path, st.Uid).Because(muster.ReasonInsecureFile).
			WithHint("chown %d %s, or run the server as that user", os.Geteuid(), path)
	}
	return nil
}

// readPrivate reads a key file that only its owner can read. It follows no
// symbolic link. An absent file gives os.ErrNotExist.
func readPrivate(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, keyError(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, keyError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, muster.Errorf(muster.EInvalid, "%s is not a file", path).WithHint("remove it")
	}
	if err := checkMode(path, info, "600"); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, keyError(path, err)
	}
	if len(data) > maxFile {
		return nil, muster.Errorf(muster.ECorrupt, "%s is too long for a key", path).Because(muster.ReasonKeysDamaged).WithHint("restore the file from a copy")
	}
	return data, nil
}

// writeNew writes a file that must not exist yet, so that after a crash it is
// there as a whole or not at all. os.ErrExist if it exists.
func writeNew(path string, data []byte) error {
	return writeWhole(path, data, os.Link) // unlike a rename it replaces nothing
}

// replace writes a file in place of another one, so that after a crash one of
// them is there as a whole.
func replace(path string, data []byte) error { return writeWhole(path, data, os.Rename) }

// writeWhole writes a file beside path and then puts it there.
func writeWhole(path string, data []byte, put func(from, to string) error) (err error) {
	dir := filepath.Dir(path)
	stale, err := filepath.Glob(path + ".new-*")
	if err != nil {
		return keyError(path, err)
	}
	for _, s := range stale {
		// Left by a crash, and nothing was signed with it. A young one may be
		// another process's that is just being written.
		if info, err := os.Lstat(s); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(s)
		}
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return keyError(path, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = put(f.Name(), path)
	}
	if errors.Is(err, os.ErrExist) {
		return err
	}
	if err == nil {
		err = atomicfile.SyncDir(dir)
	}
	if err != nil {
		return keyError(path, err)
	}
	return nil
}

func keyError(path string, err error) error {
	hint := "check that the state directory exists, belongs to this user and is writable"
	if errors.Is(err, syscall.ENOSPC) {
		hint = "free some space on the file system of the state directory"
	}
	return muster.Errorf(muster.EUnavailable, "the key file %s cannot be used", path).Because(muster.ReasonKeyUnusable).WithHint("%s", hint).Wrap(err)
}
