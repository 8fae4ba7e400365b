package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long it may take to end when it is asked to.
const grace = 10 * time.Second

// child is a running ganesha, held by a file descriptor: a signal reaches it and no
// other, whatever becomes of its number.
type child struct{ pid, fd int }

// find finds the ganesha that has a PID file locked. The kernel says who that is, so
// that neither a file that a crash left nor a number that was given anew misleads.
// os.ErrNotExist: there is none.
func find(pidFile string) (*child, error) {
	f, err := os.OpenFile(pidFile, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pid, err := holder(f)
	if err != nil {
		return nil, err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, os.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	// Still the same: then the descriptor is of the one that has the lock.
	if again, err := holder(f); err != nil || again != pid {
		_ = unix.Close(fd)
		return nil, os.ErrNotExist
	}
	return &child{pid: pid, fd: fd}, nil
}

func holder(f *os.File) (int, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, err
	}
	if lock.Type == unix.F_UNLCK || lock.Pid <= 1 {
		return 0, os.ErrNotExist
	}
	return int(lock.Pid), nil
}

// start starts a program in a session of its own; it outlives this process. in runs
// a function where the program is to be.
func start(args []string, out string, in func(func() error) error) (*child, error) {
	log, err := os.OpenFile(out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...) //nolint:gosec // the server's own program
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	// No bus: on the host's own, other programs could change what is exported. And no
	// memory of which file system was on a device lately: ganesha knows them by their
	// UUIDs, and a loop device has another one each time that it is attached.
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent", "BLKID_FILE=/dev/null"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := in(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	// As long as this process lives, it is the one that must take note of the end.
	go func() { _ = cmd.Wait() }()
	if err != nil {
		return nil, fmt.Errorf("%s ended at once; see %s: %w", args[0], out, err)
	}
	return &child{pid: cmd.Process.Pid, fd: fd}, nil
}

func (c *child) alive() bool { return !c.ended(0) }

// ended waits so long at most for its end.
func (c *child) ended(most time.Duration) bool {
	for end := time.Now().Add(most); ; {
		fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(0, time.Until(end).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

func (c *child) signal(s unix.Signal) error {
	if err := unix.PidfdSendSignal(c.fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// stop asks it to end, and ends it when it has not within grace.
func (c *child) stop(grace time.Duration) error {
	if err := c.signal(unix.SIGTERM); err != nil {
		return err
	}
	if c.ended(grace) {
		return nil
	}
	if err := c.signal(unix.SIGKILL); err != nil {
		return err
	}
	if !c.ended(10 * time.Second) {
		return fmt.Errorf("process %d does not end", c.pid)
	}
	return nil
}

// close lets go of it; it goes on.
func (c *child) close() { _ = unix.Close(c.fd) }
