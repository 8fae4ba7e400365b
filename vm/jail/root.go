package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/rootfs"
)

// staging is where the root is built. It is covered in this process's own mount namespace alone.
const staging = "/tmp"

// shown is a part of the host that is in the jail.
type shown struct {
	at   string
	fd   int  // a mount of its own
	dir  bool // or a file
	link string
}

// buildRoot makes the root and enters it: the host's /usr, which everybody may read, the dynamic
// linker's list, three devices, the files and devices of the order. No /proc, nothing to write to, and of /sys only
// two links for each device of the order, which lead nowhere.
func buildRoot(o *Order) error {
	if err := rootfs.Private(); err != nil {
		return err
	}
	// Opened before anything is covered.
	parts, err := open(o)
	if err != nil {
		return err
	}
	vfio, err := vfioDevices(o)
	if err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", staging, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=64k"); err != nil {
		return fmt.Errorf("mount a root: %w", err)
	}
	for _, s := range parts {
		if err := s.place(); err != nil {
			return fmt.Errorf("show %s: %w", s.at, err)
		}
	}
	if err := devices(o, vfio); err != nil {
		return err
	}
	if err := sysfs(o); err != nil {
		return err
	}
	if err := unix.Mount("", staging, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("close the root: %w", err)
	}
	return rootfs.Enter(staging)
}

// open opens what the jail shows of the host.
func open(o *Order) ([]shown, error) {
	var parts []shown
	add := func(at, from string, exec bool) error {
		st, err := os.Lstat(from)
		if err != nil {
			return err
		}
		s := shown{at: at, fd: -1, dir: st.IsDir()}
		if st.Mode()&os.ModeSymlink != 0 {
			if s.link, err = os.Readlink(from); err == nil {
				parts = append(parts, s)
			}
			return err
		}
		attr := uint64(unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
		if !exec {
			attr |= unix.MOUNT_ATTR_NOEXEC
		}
		if s.fd, err = unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err != nil {
			return fmt.Errorf("open %s: %w", from, err)
		}
		parts = append(parts, s)
		return unix.MountSetattr(s.fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attr})
	}
	if err := add("/usr", "/usr", true); err != nil {
		return nil, err
	}
	// Where /usr is merged these are links into it.
	for _, dir := range []string{"/lib", "/lib64", "/etc/ld.so.cache"} {
		if err := add(dir, dir, dir != "/etc/ld.so.cache"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	for at, from := range o.Files {
		real, err := filepath.EvalSymlinks(from)
		if err != nil {
			return nil, err
		}
		if err := add(at, real, false); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func (s *shown) place() error {
	at := filepath.Join(staging, s.at)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if s.link != "" {
		return os.Symlink(s.link, at)
	}
	defer func() { _ = unix.Close(s.fd) }()
	if s.dir {
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
	} else if err := os.WriteFile(at, nil, 0o444); err != nil {
		return err
	}
	return unix.MoveMount(s.fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// device is a character device of Linux, by its numbers.
type device struct {
	name         string
	major, minor uint32
	mode         uint32
	own          bool // it belongs to the jail's user
}

// devices makes those that QEMU opens by name.
func devices(o *Order, more []device) error {
	list := []device{{"null", 1, 3, 0o666, false}, {"zero", 1, 5, 0o444, false}, {"urandom", 1, 9, 0o444, false}}
	if o.KVM {
		list = append(list, device{"kvm", 10, 232, 0o600, true})
	}
	dir := filepath.Join(staging, "dev")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if len(more) > 0 {
		if err := os.Mkdir(filepath.Join(dir, "vfio"), 0o755); err != nil {
			return err
		}
	}
	for _, d := range append(list, more...) {
		at := filepath.Join(dir, d.name)
		if err := unix.Mknod(at, unix.S_IFCHR|d.mode, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return fmt.Errorf("make the device %s: %w", d.name, err)
		}
		if err := os.Chmod(at, os.FileMode(d.mode)); err != nil {
			return err
		}
		if d.own {
			if err := os.Chown(at, o.ID, o.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
