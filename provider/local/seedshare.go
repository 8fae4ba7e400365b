package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// seeding is in a share while it is being seeded: whoever finds it begins anew.
const seeding = ".muster-seeding"

// seedShare copies what the image has at a place into an empty share, before
// the share covers it. It runs inside the machine, as its root, so that a share
// can name nothing outside. Copies are not flushed: a crash of the host ends
// the machine as well, and its services flush what they care for.
func seedShare(share int, from string) error {
	to := fmt.Sprintf("/proc/self/fd/%d", share)
	entries, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	begun := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == seeding })
	if len(entries) > 0 && !begun {
		return nil // it has been in use
	}
	mark := filepath.Join(to, seeding)
	if err := touch(mark); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == seeding {
			continue
		}
		if err := os.RemoveAll(filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	if err := copyTree(from, to); err != nil {
		return fmt.Errorf("seed %s: %w", from, err)
	}
	return os.Remove(mark)
}

// copyTree copies directories, files and links with owners and modes into a
// directory that exists. What is none of them stays behind.
func copyTree(from, to string) error {
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range list {
		a, b := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch e.Type() {
		case fs.ModeDir:
			if err := os.Mkdir(b, 0o700); err != nil {
				return err
			}
			if err := copyTree(a, b); err != nil {
				return err
			}
		case 0:
			if err := copyFile(a, b); err != nil {
				return err
			}
		case fs.ModeSymlink:
			target, err := os.Readlink(a)
			if err != nil {
				return err
			}
			if err := os.Symlink(target, b); err != nil {
				return err
			}
		}
	}
	return copyOwner(from, to)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return copyOwner(from, to)
}

// copyOwner gives a copy its owner, then its mode, which a change of owner may
// have lowered.
func copyOwner(from, to string) error {
	var st unix.Stat_t
	if err := unix.Stat(from, &st); err != nil {
		return err
	}
	if err := unix.Chown(to, int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	return unix.Chmod(to, st.Mode&0o7777)
}
