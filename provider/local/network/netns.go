package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// netnsDir is where named network namespaces live, as `ip netns` shows them.
const netnsDir = "/run/netns"

// openNetns opens the named network namespace, making it when create is set.
// The caller closes the file.
func openNetns(name string, create bool) (*os.File, error) {
	path := filepath.Join(netnsDir, name)
	f, err := openNS(path)
	if err == nil || !create {
		return f, err
	}
	if err := prepareNetnsDir(); err != nil {
		return nil, err
	}
	// A file that is no namespace is what a crash between the two steps below
	// leaves behind: it is used again.
	g, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return nil, err
	}
	_ = g.Close()
	done := make(chan error, 1)
	OwnThread(func() {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("unshare network: %w", err)
			return
		}
		self := fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
		if err := unix.Mount(self, path, "", unix.MS_BIND, ""); err != nil {
			done <- fmt.Errorf("bind %s: %w", path, err)
			return
		}
		done <- nil
	})
	if err := <-done; err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	return openNS(path)
}

// prepareNetnsDir makes the directory of names, as a mount of itself that all mount
// namespaces share. `ip netns add` does the same where it was not done yet: a namespace
// that had its name before that would be covered, and could not be removed any more.
func prepareNetnsDir() error {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(netnsDir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil { // as ip does
		return err
	}
	err = unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if errors.Is(err, unix.EINVAL) { // it is no mount yet
		if err = unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return fmt.Errorf("prepare %s: %w", netnsDir, err)
	}
	return nil
}

// openNS opens path and checks that it is a namespace.
func openNS(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		_ = f.Close()
		return nil, err
	}
	if st.Type != unix.NSFS_MAGIC {
		_ = f.Close()
		return nil, fmt.Errorf("%s is not a namespace: %w", path, os.ErrNotExist)
	}
	return f, nil
}

// deleteNetns removes the name. The namespace itself goes when nothing uses it.
func deleteNetns(name string) error {
	path := filepath.Join(netnsDir, name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil &&
		!errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// inNetns runs f on a thread that is inside the namespace. f must not start
// goroutines that open sockets: they would run on other threads.
func inNetns(ns *os.File, f func() error) error {
	done := make(chan error, 1)
	OwnThread(func() {
		home, err := unix.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()),
			unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			done <- err
			return
		}
		defer func() { _ = unix.Close(home) }()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread() // nothing changed
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		err = f()
		// A thread that cannot go home stays locked and ends here.
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	})
	return <-done
}
