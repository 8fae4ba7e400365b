package qemu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/qmp"
)

// Running is a machine that is on.
type Running struct {
	*qmp.Monitor
	pid  int
	kill func() error
	done chan struct{}
	err  error
}

// Start switches a machine on. files are what the machine inherits, from descriptor
// 3 on; the monitor comes after them. It dies with this process.
func Start(ctx context.Context, c Config, files []*os.File, log *os.File, told func(qmp.Event)) (*Running, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	c.MonitorFD = firstFD + len(files)
	// What is left of the machine's last run would be in the way.
	if err := os.Remove(c.Console); err != nil && !errors.Is(err, os.ErrNotExist) {
		_ = ours.Close()
		return nil, err
	}
	r, err := spawn(accel.Program, Args(c), append(files, theirs), log)
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	go func() { // do not wait for the answer of one that refused its command line
		<-r.done
		_ = ours.Close()
	}()
	if r.Monitor, err = qmp.NewMonitor(ctx, ours, told); err != nil {
		_ = r.kill()
		<-r.done
		return nil, fmt.Errorf("QEMU did not start: %w", err)
	}
	return r, nil
}

// firstFD is the number of the first file that a process inherits.
const firstFD = 3

// spawn starts a process that dies with this one.
func spawn(program string, args []string, files []*os.File, log *os.File) (*Running, error) {
	r := &Running{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ends the child with the thread that started it, not with the
		// process: this thread waits with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.CommandContext(context.Background(), program, args...) //nolint:gosec // the lab's own programs
		cmd.ExtraFiles, cmd.Stdout, cmd.Stderr, cmd.Dir = files, log, log, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		r.pid, r.kill = cmd.Process.Pid, cmd.Process.Kill
		started <- nil
		r.err = cmd.Wait()
		close(r.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return r, nil
}

// PID is the number of its process, for people.
func (r *Running) PID() int { return r.pid }

// Done is closed when its process has ended.
func (r *Running) Done() <-chan struct{} { return r.done }

// Err is how it ended, once Done: nil when the guest switched itself off.
func (r *Running) Err() error { return r.err }

// Cut takes its power away, and returns when it is off.
func (r *Running) Cut() error {
	if err := r.kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-r.done:
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("QEMU does not end")
	}
}

// pair makes two connected sockets, ours as a connection.
func pair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "monitor"), os.NewFile(uintptr(fds[1]), "monitor")
	conn, err := net.FileConn(mine)
	_ = mine.Close()
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}
