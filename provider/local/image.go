package local

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lowers gives out mounts of images. An image is attached to one loop device
// for as long as the server or a machine uses it; the device removes itself
// when the last user goes. No mount of it ever has a place in the host's tree.
//
// An image that no machine has stays open for a while: what of it is in memory,
// unpacked, halves the work of starting the next machine.
type lowers struct {
	keepFor time.Duration
	mu      sync.Mutex
	open    map[string]*lower
	timer   *time.Timer // closes what was idle too long
}

// lower is one image that can be mounted.
type lower struct {
	path string
	idle time.Time // since when no machine has it; zero: one does
	loop *os.File  // loop device, nil for a directory
	held int       // a mount that keeps what of the image is in memory; -1: none
	dir  string    // unpacked tree, for kernels that cannot map squashfs
}

func newLowers(keepFor time.Duration) *lowers {
	return &lowers{keepFor: keepFor, open: map[string]*lower{}}
}

// mount returns a new detached read-only mount of the image, as an open file
// descriptor that the caller closes.
func (l *lowers) mount(path string) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lo := l.open[path]
	if lo == nil {
		var err error
		if lo, err = openLower(path); err != nil {
			return -1, err
		}
		l.open[path] = lo
	}
	lo.idle = time.Time{}
	return lo.mount()
}

// keep closes what is not named in used and was not for as long as idle images
// are kept. recheck is called when there may be more to close.
func (l *lowers) keep(used map[string]bool, now time.Time, recheck func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := false
	for path, lo := range l.open {
		switch {
		case used[path]:
			lo.idle = time.Time{}
		case l.keepFor > 0 && lo.idle.IsZero():
			lo.idle, waiting = now, true
		case l.keepFor > 0 && now.Sub(lo.idle) < l.keepFor:
			waiting = true
		default:
			lo.close()
			delete(l.open, path)
		}
	}
	if waiting && l.timer == nil {
		l.timer = time.AfterFunc(l.keepFor+time.Second, func() {
			l.mu.Lock()
			l.timer = nil
			l.mu.Unlock()
			recheck()
		})
	}
}

// close closes all.
func (l *lowers) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	for path, lo := range l.open {
		lo.close()
		delete(l.open, path)
	}
}

func openLower(path string) (*lower, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return &lower{path: path, held: -1, dir: path}, nil
	}
	loop, err := attachLoop(path)
	if err != nil {
		return nil, fmt.Errorf("attach %s to a loop device: %w", filepath.Base(path), err)
	}
	l := &lower{path: path, held: -1, loop: loop}
	if l.held, err = l.mount(); err != nil {
		_ = loop.Close()
		return nil, err
	}
	return l, nil
}

func (l *lower) close() {
	if l.held >= 0 {
		_ = unix.Close(l.held)
	}
	if l.loop != nil {
		_ = l.loop.Close()
	}
}

// mount makes one more mount of the image. Mounts of one loop device share
// the file system and its page cache.
func (l *lower) mount() (int, error) {
	if l.loop == nil {
		return cloneTree(l.dir, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV)
	}
	fsfd, err := unix.Fsopen("squashfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen squashfs: %w", err)
	}
	defer func() { _ = unix.Close(fsfd) }()
	if err := unix.FsconfigSetString(fsfd, "source", l.loop.Name()); err != nil {
		return -1, fmt.Errorf("squashfs source: %w", err)
	}
	if err := unix.FsconfigSetFlag(fsfd, "ro"); err != nil {
		return -1, fmt.Errorf("squashfs ro: %w", err)
	}
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return -1, fmt.Errorf("mount %s: %w", filepath.Base(l.path), err)
	}
	fd, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return -1, fmt.Errorf("fsmount %s: %w", filepath.Base(l.path), err)
	}
	return fd, nil
}

// cloneTree returns a detached bind mount of dir with the given attributes.
func cloneTree(dir string, attr uint64) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open tree %s: %w", dir, err)
	}
	if attr != 0 {
		set := &unix.MountAttr{Attr_set: attr}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, set); err != nil {
			_ = unix.Close(fd)
			return -1, fmt.Errorf("set attributes of %s: %w", dir, err)
		}
	}
	return fd, nil
}

// mapIDs makes a detached mount show its owners as seen in a user namespace.
func mapIDs(mountFD int, userns *os.File) error {
	set := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userns.Fd())}
	if err := unix.MountSetattr(mountFD, "", unix.AT_EMPTY_PATH, set); err != nil {
		return fmt.Errorf("map owners of a mount: %w", err)
	}
	return nil
}
