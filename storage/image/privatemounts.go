package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// withPrivateMounts runs f on a thread whose mounts nobody else sees. They end
// with that thread, so also when this program is killed. f must not hand work
// on files to other goroutines: those run on other threads.
func withPrivateMounts(f func() error) error {
	return onOwnThread(func() error {
		if err := syscall.Unshare(syscall.CLONE_FS | syscall.CLONE_NEWNS); err != nil {
			return fmt.Errorf("a mount namespace: %w", err)
		}
		if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("private mounts: %w", err)
		}
		return f()
	})
}

// onOwnThread runs f on a thread that ends with it, so that f may change what the
// threads of a program otherwise share.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: a thread that was changed must not be used again, so it ends
		// with this goroutine.
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() {
			// The first thread of a program cannot end before the program, and
			// /proc/self speaks of it. Keep it busy and take another.
			done <- onOwnThread(f)
			runtime.UnlockOSThread()
			return
		}
		done <- f()
	}()
	return <-done
}

// withMountsOf runs f on a thread of its own that sees the files that the calling
// thread sees.
func withMountsOf(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	mounts, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		return fmt.Errorf("the mounts of a build: %w", err)
	}
	defer func() { _ = mounts.Close() }()
	return onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("the mounts of a build: %w", err)
		}
		if err := unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("the mounts of a build: %w", err)
		}
		return f()
	})
}

// layOver mounts the image file read-only at work's "below" and a writable
// layer over it at root. It must be called within withPrivateMounts. unmount
// may be called whatever err is.
func (s *Store) layOver(ctx context.Context, work *workspace, file, root string, log io.Writer) (unmount func(), err error) {
	below := work.path("below")
	unmount = func() {
		for _, dir := range []string{root, below} {
			// What is not mounted, or still busy, ends with the thread.
			_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		}
	}
	for _, dir := range []string{below, root, work.path("upper"), work.path("overlay-work")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return unmount, err
		}
	}
	// mount(8) finds a loop device and has the kernel free it by itself.
	if err := s.runHere(ctx, job{log: log, argv: []string{"mount", "-t", "squashfs", "-o", "ro,loop", file, below}}); err != nil {
		return unmount, err
	}
	options := "lowerdir=" + below + ",upperdir=" + work.path("upper") + ",workdir=" + work.path("overlay-work")
	if err := syscall.Mount("overlay", root, "overlay", 0, options); err != nil {
		return unmount, fmt.Errorf("overlay: %w", err)
	}
	return unmount, nil
}

// unpackBase puts the files of an image at root, ready to be changed: as an
// overlay where the kernel can, which takes no time, or else as a copy.
func (s *Store) unpackBase(ctx context.Context, work *workspace, file, root string, log io.Writer) (release func(), err error) {
	unmount, err := s.layOver(ctx, work, file, root, log)
	if err == nil {
		return unmount, nil
	}
	unmount()
	if ctx.Err() != nil {
		return func() {}, ctx.Err()
	}
	s.log.Info("overlay unavailable, unpacking image", "error", err)
	if err := os.Remove(root); err != nil && !errors.Is(err, os.ErrNotExist) {
		return func() {}, err
	}
	return func() {}, s.run(ctx, job{log: log, argv: []string{s.tools.unsquashfs, "-no-progress", "-quiet", "-d", root, file}})
}
