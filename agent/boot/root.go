package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/agent/units"
	"github.com/muster-hpc/muster/internal/loopdev"
	"github.com/muster-hpc/muster/wire"
)

// Places while the root file system is put together. All are in memory.
const (
	dirImage = "/image"   // the squashfs, as a file
	dirLower = "/lower"   // what is in it
	dirUpper = "/upper"   // what is written over it
	dirRoot  = "/sysroot" // both: the root to be
	fileRoot = dirImage + "/root.squashfs"
)

// mountKernel mounts what every program expects.
func mountKernel() error {
	const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		kind, at string
		flags    uintptr
		data     string
	}{
		{"proc", "/proc", safe, ""},
		{"sysfs", "/sys", safe, ""},
		{"securityfs", "/sys/kernel/security", safe, ""},
		{"devtmpfs", "/dev", unix.MS_NOSUID, "mode=0755"},
		{"tmpfs", "/run", unix.MS_NOSUID | unix.MS_NODEV, "mode=0755,size=20%"},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil && m.kind != "securityfs" { // not every kernel has it
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, m.flags, m.data); err != nil && !errors.Is(err, unix.EBUSY) && m.kind != "securityfs" {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.at, err)
		}
	}
	return nil
}

// mountMore mounts what the image's init would start a program for each time. What
// fails here it tries again.
func mountMore(root string) {
	const safe = unix.MS_NOSUID | unix.MS_NODEV
	for _, m := range []struct {
		kind, at string
		flags    uintptr
		data     string
	}{
		{"hugetlbfs", "/dev/hugepages", safe, ""},
		{"mqueue", "/dev/mqueue", safe | unix.MS_NOEXEC, ""},
		{"debugfs", "/sys/kernel/debug", safe | unix.MS_NOEXEC, ""},
		{"tracefs", "/sys/kernel/tracing", safe | unix.MS_NOEXEC, ""},
		{"fusectl", "/sys/fs/fuse/connections", safe | unix.MS_NOEXEC, ""},
		{"tmpfs", "/run/lock", safe | unix.MS_NOEXEC, "mode=1777,size=5242880"},
		{"tmpfs", root + "/tmp", safe | unix.MS_STRICTATIME, "mode=1777,size=50%,nr_inodes=1m"},
	} {
		// A link that the image has there is not followed.
		if st, err := os.Lstat(m.at); err == nil && st.IsDir() || os.IsNotExist(err) && os.MkdirAll(m.at, 0o755) == nil {
			_ = unix.Mount(m.kind, m.at, m.kind, m.flags, m.data)
		}
	}
}

// imageFile makes the file in memory that the image is fetched into. One of an
// earlier try is thrown away.
func imageFile(size int64) (*os.File, error) {
	if err := os.MkdirAll(dirImage, 0o700); err != nil {
		return nil, err
	}
	_ = unix.Unmount(dirImage, unix.MNT_DETACH) // of an earlier try
	// A file system of its own: it stays when the initramfs is freed. It grows with
	// the file, and has room for its tables.
	data := fmt.Sprintf("mode=0700,size=%d", size+16<<20)
	if err := unix.Mount("tmpfs", dirImage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, data); err != nil {
		return nil, fmt.Errorf("mount memory for the image: %w", err)
	}
	f, err := os.OpenFile(fileRoot, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return nil, err
	}
	// All of it at once: memory that is missing later would end this program.
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("memory for the image: %w", err)
	}
	return f, nil
}

// filled calls fill with the bytes of a file, which it may write.
func filled(f *os.File, size int64, fill func([]byte) error) error {
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map the image's memory: %w", err)
	}
	return errors.Join(fill(b), unix.Munmap(b))
}

// mountImage is mountRoot with a file.
func mountImage(image *os.File) error {
	loop, err := loopdev.Attach(image, unix.LO_FLAGS_READ_ONLY)
	if err != nil {
		return fmt.Errorf("show the image as a disk: %w", err)
	}
	defer loop.Close()
	return mountRoot(loop.Name())
}

// mountRoot mounts the image on a disk and a writable layer over it.
func mountRoot(disk string) error {
	undoRoot()
	for _, dir := range []string{dirLower, dirUpper, dirRoot} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(disk, dirLower, "squashfs", unix.MS_RDONLY|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("mount the image: %w", err)
	}
	if err := unix.Mount("tmpfs", dirUpper, "tmpfs", 0, "mode=0755,size=50%"); err != nil {
		return fmt.Errorf("mount memory for what is written: %w", err)
	}
	for _, dir := range []string{dirUpper + "/upper", dirUpper + "/work"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	data := "lowerdir=" + dirLower + ",upperdir=" + dirUpper + "/upper,workdir=" + dirUpper + "/work"
	if err := unix.Mount("overlay", dirRoot, "overlay", 0, data); err != nil {
		return fmt.Errorf("mount the overlay: %w", err)
	}
	return nil
}

// undoRoot takes apart what an earlier try left.
func undoRoot() {
	for _, dir := range []string{dirRoot, dirUpper, dirLower} {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
}

// fill puts into the root what makes it this node: through a view that no link of
// the image leads out of.
func fill(root *os.Root, o *wire.BootTask, agent io.Reader) error {
	if err := putReader(root, units.Agent, agent, 0o755); err != nil {
		return fmt.Errorf("place the agent: %w", err)
	}
	for name, text := range whole().Files() {
		if err := put(root, name, []byte(text), 0o644); err != nil {
			return fmt.Errorf("place %s: %w", name, err)
		}
	}
	for _, m := range append(units.Masks(), o.Masks...) {
		if err := link(root, "/dev/null", "etc/systemd/system/"+m); err != nil {
			return fmt.Errorf("mask %s: %w", m, err)
		}
	}
	for _, g := range units.Silenced() {
		if err := link(root, "/dev/null", "etc/systemd/system-generators/"+g); err != nil {
			return fmt.Errorf("silence %s: %w", g, err)
		}
	}
	for _, l := range units.Late() {
		if err := root.Remove(l); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("start %s later: %w", l, err)
		}
	}
	if err := link(root, units.DefaultTo, units.Default); err != nil {
		return err
	}
	if err := put(root, "etc/hostname", []byte(o.Hostname+"\n"), 0o644); err != nil {
		return fmt.Errorf("place the host's name: %w", err)
	}
	if err := leaveScratch(root, o.Scratch); err != nil {
		return fmt.Errorf("place the list of scratch disks: %w", err)
	}
	for _, f := range o.Files {
		if f.Owner != "" && f.Owner != "root" {
			return fmt.Errorf("%s: only root owns files before the image runs", f.Path)
		}
		mode := os.FileMode(f.Mode & 0o777)
		if err := put(root, strings.TrimPrefix(f.Path, "/"), []byte(f.Content), mode); err != nil {
			return fmt.Errorf("place %s: %w", f.Path, err)
		}
	}
	for _, dir := range []string{"proc", "sys", "dev", "run", "tmp"} {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// leaveScratch names the disks that the node may use, and takes away what an image
// says of that: without the file no disk is touched.
func leaveScratch(root *os.Root, disks []wire.CleanDisk) error {
	if len(disks) == 0 {
		if err := root.Remove(units.ScratchOrder); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(disks)
	if err != nil {
		return err
	}
	return put(root, units.ScratchOrder, b, 0o644)
}

func put(root *os.Root, name string, b []byte, mode os.FileMode) error {
	return putReader(root, name, strings.NewReader(string(b)), mode)
}

// putReader replaces a file of the image, which may be a link.
func putReader(root *os.Root, name string, r io.Reader, mode os.FileMode) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// link replaces what is there by a link.
func link(root *os.Root, to, name string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return root.Symlink(to, name)
}

// Files that the agent's service reads in the image.
const (
	runDir        = "/run/muster"
	bootstrapFile = "seed.json"
	StageFile     = "boot.json" // what was timed before the service
)

// leave writes the seed and the stages where the agent's service finds them.
func leave(dir string, seed *wire.Bootstrap, st []wire.BootStage) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	for name, v := range map[string]any{bootstrapFile: seed, StageFile: st} {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		at := filepath.Join(dir, name)
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(at, b, 0o400); err != nil {
			return err
		}
	}
	return nil
}
