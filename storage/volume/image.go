package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/loopdev"
)

// makeImage makes a file with an empty file system unless there is one, and reports how
// large it is. The file takes room on the disk as it is filled.
func makeImage(ctx context.Context, path string, size int64) (int64, error) {
	st, err := os.Lstat(path)
	if err == nil {
		return st.Size(), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	made := path + ".new"
	if err := os.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	f, err := os.OpenFile(made, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	err = f.Truncate(size)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	// Nothing is kept back for root, whom nodes have. A journal of its full size would
	// take a gigabyte of the disk for an empty volume.
	journal := min(64, max(4, size>>20/16))
	if err := tool(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-J", "size="+strconv.FormatInt(journal, 10),
		"-E", "lazy_itable_init=1,root_owner=0:0", made); err != nil {
		return 0, err
	}
	return size, os.Rename(made, path)
}

// mountImage mounts the file system unless it is mounted. No device and no program
// with another's rights in it is one for the host.
func mountImage(ctx context.Context, image, root string) error {
	if on, err := isMountPoint(root); on || err != nil {
		return err
	}
	if err := growUnmounted(ctx, image); err != nil {
		return err
	}
	dev, err := attachImage(image)
	if err != nil {
		return err
	}
	defer dev.Close() // the mount holds it from then on, and it goes with the mount
	// What is deleted inside gives its room back to the disk.
	if err := unix.Mount(dev.Name(), root, "ext4", unix.MS_NOSUID|unix.MS_NODEV, "discard"); err != nil {
		return fmt.Errorf("mount %s: %w", image, err)
	}
	if err := unix.Chmod(root, 0o700); err != nil {
		return err
	}
	return ignoreAbsent(os.Remove(filepath.Join(root, "lost+found")))
}

// attachImage attaches a file to a free loop device that detaches itself when its
// last user closes it.
func attachImage(path string) (*os.File, error) {
	back, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	// Past the page cache of the file below: it would hold everything twice.
	return loopdev.Attach(back, unix.LO_FLAGS_DIRECT_IO)
}

// growing is the end of the name of a note beside an image: its file is larger than
// what it holds, as yet.
const growing = ".grows"

// growImage makes a mounted file system larger if it is smaller. Where that may not be
// done while it is mounted, it is left for the next time that it is.
func growImage(ctx context.Context, image, root string, had, size int64) error {
	_, err := os.Lstat(image + growing)
	if had >= size && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.WriteFile(image+growing, nil, 0o600); err != nil {
		return err
	}
	if had < size {
		if err := os.Truncate(image, size); err != nil {
			return err
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(root, &st); err != nil {
		return err
	}
	dev, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", unix.Minor(st.Dev)), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	if err := unix.IoctlSetInt(int(dev.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return err
	}
	if tool(ctx, "resize2fs", dev.Name()) != nil {
		return nil
	}
	return os.Remove(image + growing)
}

// growUnmounted makes a file system as large as its file.
func growUnmounted(ctx context.Context, image string) error {
	if _, err := os.Lstat(image + growing); err != nil {
		return ignoreAbsent(err)
	}
	// e2fsck says 1 when it has mended something.
	if err := tool(ctx, "e2fsck", "-f", "-p", image); err != nil && !exitedWith(err, 1) {
		return err
	}
	if err := tool(ctx, "resize2fs", image); err != nil {
		return err
	}
	return os.Remove(image + growing)
}

// tool runs a program of e2fsprogs.
func tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.300s", name, err, out)
	}
	return nil
}

func exitedWith(err error, code int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == code
}

// isMountPoint reports whether a file system is mounted on a directory.
func isMountPoint(at string) (bool, error) {
	var here, above unix.Stat_t
	if err := unix.Lstat(at, &here); err != nil {
		return false, err
	}
	if err := unix.Lstat(filepath.Dir(at), &above); err != nil {
		return false, err
	}
	return here.Dev != above.Dev, nil
}
