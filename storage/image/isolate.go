package image

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	muster "github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/inherit"
)

// job is a program to run.
type job struct {
	argv   []string
	env    []string // beyond the few variables that every job gets
	log    io.Writer
	onLine func(line string) // each line of output; may be nil
	// mirrors is the only way out that the job has; nil: it has no network.
	mirrors *mirrorProxy
	// confined runs the job within an image and reach nothing else; see Confine.
	confined *confinement
	bound    func(pid int) (leave func() error, err error) // of a confined job; may be nil
	leave    func() error                                  // of one that was bound
}

// run runs a job in mount, process, IPC, network and host name namespaces of its own:
// whatever it mounts or starts ends with it, also when it fails, when ctx ends, and when
// this program is killed. The error tells the last lines of what it said.
func (s *Store) run(ctx context.Context, j job) error {
	if !s.tools.isolate {
		if j.confined != nil {
			j.argv = j.confined.Argv
		}
		return execute(ctx, j, 0)
	}
	if j.confined != nil {
		told, err := json.Marshal(j.confined)
		if err != nil {
			return err
		}
		j.argv = append(slices.Clone(s.tools.confine), string(told))
		j.bound = s.tools.bound
	} else {
		// A process namespace needs its own /proc to be consistent.
		j.argv = append([]string{"/bin/sh", "-c", `mount -t proc proc /proc && exec "$@"`, "sh"}, j.argv...)
	}
	const spaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if j.mirrors == nil {
		return execute(ctx, j, spaces|syscall.CLONE_NEWNET)
	}
	j.env = append(j.env, mirrorEnvironment()...)
	return withMountsOf(func() error {
		done, err := j.mirrors.listen()
		if err != nil {
			return err
		}
		defer done()
		return execute(ctx, j, spaces)
	})
}

// runHere runs a job that is to change the mounts of the calling thread.
func (s *Store) runHere(ctx context.Context, j job) error { return execute(ctx, j, 0) }

// execute runs a job in the named namespaces beside the thread's own; with any, its
// mounts are its own, too.
func execute(ctx context.Context, j job, spaces uintptr) error {
	cmd := exec.CommandContext(ctx, j.argv[0], j.argv[1:]...)
	cmd.Env = append(hostEnvironment(), j.env...)
	cmd.Dir = "/"
	cmd.WaitDelay = 5 * time.Second
	tail := &tail{log: j.log, onLine: j.onLine, began: time.Now()}
	out, in, err := os.Pipe()
	if err != nil {
		return storeError("start "+j.argv[0], err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if spaces != 0 {
		// The first process of a process namespace takes all others with it.
		cmd.SysProcAttr.Cloneflags = spaces
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // Go makes it private
	}
	var reading sync.WaitGroup
	reading.Go(func() { tail.copy(out) })
	// The kernel sends Pdeathsig when the *thread* that started the job ends,
	// and the job has the mounts of that thread: stay on it until the job is
	// over.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	inherit.Seal()
	err = start(cmd, &j)
	_ = in.Close() // the job has its own copy
	if err == nil {
		err = cmd.Wait()
	}
	if j.leave != nil {
		err = errors.Join(err, j.leave())
	}
	reading.Wait()
	_ = out.Close()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return muster.Errorf(muster.EUnavailable, "%s is not installed", j.argv[0]).Because(muster.ReasonProgramMissing).WithHint("see what is missing: muster doctor").Wrap(err)
	case err != nil:
		return &jobError{program: j.program(), err: err, said: tail.lines}
	}
	return nil
}

// start starts a job. A confined one goes on when it is in its control group.
func start(cmd *exec.Cmd, j *job) error {
	if j.confined == nil {
		return cmd.Start()
	}
	wait, word, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = wait.Close(); _ = word.Close() }()
	cmd.ExtraFiles = []*os.File{wait}
	if err := cmd.Start(); err != nil {
		return err
	}
	if j.bound != nil {
		leave, err := j.bound(cmd.Process.Pid)
		if err != nil {
			_ = cmd.Process.Kill()
			return errors.Join(err, cmd.Wait())
		}
		j.leave = leave
	}
	_, err = word.WriteString("go\n")
	return err
}

// program is what a job is called when it fails.
func (j *job) program() string {
	if j.confined != nil {
		return j.confined.Argv[0]
	}
	return j.argv[0]
}

// hostEnvironment is what every job gets: where programs are. Nothing else of this
// program's environment is any business of a package's scripts.
func hostEnvironment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"}
}

// jobError is a failed job with the last of what it said.
type jobError struct {
	program string
	err     error
	said    []string
}

func (e *jobError) Error() string {
	return fmt.Sprintf("%s failed (%v): %s", e.program, e.err, strings.Join(e.complaints(), "; "))
}

func (e *jobError) Unwrap() error { return e.err }

// complaints are the lines that look like the reason, or else the last ones.
func (e *jobError) complaints() []string {
	var out []string
	for i, l := range e.said {
		switch {
		case strings.HasPrefix(l, "dpkg: error processing"):
			// What the package's own script complained of stands before it, what became
			// of the script after it.
			if i > 0 && !strings.HasPrefix(e.said[i-1], "Setting up ") {
				out = append(out, e.said[i-1])
			}
			out = append(out, l)
			if i+1 < len(e.said) {
				out = append(out, strings.TrimSpace(e.said[i+1]))
			}
		case strings.HasPrefix(l, "E: ") && !strings.Contains(l, "run_chroot"), strings.Contains(l, "No space left on device"):
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		out = e.said
	}
	out = slices.Compact(out)
	return out[max(0, len(out)-5):]
}

// tail hands on lines and remembers the last of them.
type tail struct {
	began  time.Time
	log    io.Writer
	onLine func(string)
	lines  []string
}

func (t *tail) copy(r io.Reader) {
	const remembered, longest = 60, 4096
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			if len(line) > longest {
				line = line[:longest]
			}
			if t.log != nil {
				_, _ = fmt.Fprintf(t.log, "%7.2f %s\n", time.Since(t.began).Seconds(), line) // a log that cannot be written stops no build
			}
			t.lines = append(t.lines, line)
			if len(t.lines) > remembered {
				t.lines = t.lines[1:]
			}
			if t.onLine != nil {
				t.onLine(line)
			}
		}
		if err != nil {
			return
		}
	}
}
