package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// switchRoot frees the initramfs, makes the root the root and becomes the image's
// init. It returns only when that fails.
func switchRoot(argv []string) error {
	if len(argv) == 0 {
		argv = []string{"/sbin/init"}
	}
	mountMore(dirRoot)
	for _, dir := range []string{"/proc", "/sys", "/dev", "/run"} {
		if err := unix.Mount(dir, dirRoot+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	if err := unix.Chdir(dirRoot); err != nil {
		return err
	}
	// What is mounted below stays: the image's file, its tree, the writable layer.
	if err := empty("/"); err != nil {
		return fmt.Errorf("free the initramfs: %w", err)
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	unix.Umask(0o022)
	env := []string{"HOME=/", "TERM=linux", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	loadAhead(env)
	if err := unix.Exec(argv[0], argv, env); err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	return nil
}

// loadAhead loads the driver by which a node mounts its volumes, beside the start of
// the image's init, which uses one processor for a while: the mounts need not wait for it.
// The init becomes the parent of the program. Without it the mount loads the driver.
func loadAhead(env []string) {
	const program, driver = "/usr/sbin/modprobe", "nfsv4"
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	// Not waited for, and if it cannot be started, nothing is lost.
	_, _ = os.StartProcess(program, []string{program, "-q", driver}, &os.ProcAttr{Dir: "/", Env: env, Files: []*os.File{null, null, null}})
}

// empty removes everything of one file system below dir, but no mount in it.
func empty(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	return emptyOn(dir, st.Dev)
}

func emptyOn(dir string, dev uint64) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range list {
		at := filepath.Join(dir, e.Name())
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil || st.Dev != dev {
			continue
		}
		if e.IsDir() {
			errs = append(errs, emptyOn(at, dev))
		}
		if err := os.Remove(at); err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
