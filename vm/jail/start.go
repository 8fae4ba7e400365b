package jail

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/inherit"
)

// Jail is a program in its jail.
type Jail struct {
	cmd  *exec.Cmd
	hold *os.File // its end is the end of the jail, until the program runs
	done chan struct{}
	err  error
}

// Start starts a program in a jail. command starts a program that calls Enter, to which Argument is
// added; files are what the program inherits, from FirstFD on; what it prints goes to log.
// It is a child of the calling process, in the same control groups, and is killed when that ends.
func Start(command []string, o *Order, files []*os.File, log *os.File) (*Jail, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	c := &Jail{hold: w, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ends the child with the thread that started it, not with the process:
		// this thread waits with it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c.cmd = exec.CommandContext(context.Background(), command[0], append(slices.Clone(command[1:]), Argument)...) //nolint:gosec // this program
		c.cmd.ExtraFiles = append([]*os.File{r}, files...)
		c.cmd.Stdout, c.cmd.Stderr, c.cmd.Dir = log, log, "/"
		c.cmd.Env = []string{"GOMAXPROCS=1"}
		c.cmd.SysProcAttr = &syscall.SysProcAttr{
			Setsid: true, Pdeathsig: syscall.SIGKILL,
			Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		}
		inherit.Seal()
		if err := c.cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("start a process in namespaces of its own: %w", err)
	}
	if err := writeOrder(w, o); err != nil {
		c.Kill()
		<-c.done
		_ = w.Close()
		return nil, fmt.Errorf("hand over to the jail: %w", err)
	}
	return c, nil
}

// PID is the number of its process on the host.
func (c *Jail) PID() int { return c.cmd.Process.Pid }

// Done is closed when it has ended.
func (c *Jail) Done() <-chan struct{} { return c.done }

// Err is how it ended, once Done.
func (c *Jail) Err() error { return c.err }

// Kill ends it at once; Done says when.
func (c *Jail) Kill() { _ = c.cmd.Process.Kill() }
