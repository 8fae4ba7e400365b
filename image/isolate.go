package image

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	muster "github.com/muster-hpc/muster"
)

// job is a program of the host to run.
type job struct {
	argv   []string
	env    []string // beyond the few variables that every job gets
	log    io.Writer
	onLine func(line string) // each line of output; may be nil
}

// run runs a job in mount, process and IPC namespaces of its own: whatever it
// mounts or starts ends with it, also when it fails, when ctx ends, and when
// this program is killed. The error tells the last lines of what it said.
func (s *Store) run(ctx context.Context, j job) error {
	return execute(ctx, j, s.tools.isolate)
}

// runHere runs a job that is to change the mounts of the calling thread.
func (s *Store) runHere(ctx context.Context, j job) error { return execute(ctx, j, false) }

func execute(ctx context.Context, j job, isolate bool) error {
	argv := j.argv
	if isolate {
		// A process namespace needs its own /proc to be consistent.
		argv = append([]string{"/bin/sh", "-c", `mount -t proc proc /proc && exec "$@"`, "sh"}, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
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
	if isolate {
		// The first process of a process namespace takes all others with it.
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // Go makes it private
	}
	var reading sync.WaitGroup
	reading.Go(func() { tail.copy(out) })
	// The kernel sends Pdeathsig when the *thread* that started the job ends,
	// and the job has the mounts of that thread: stay on it until the job is
	// over.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	_ = in.Close() // the job has its own copy
	if err == nil {
		err = cmd.Wait()
	}
	reading.Wait()
	_ = out.Close()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return muster.Errorf(muster.EUnavailable, "%s is not installed", j.argv[0]).WithHint("see what is missing: muster doctor").Wrap(err)
	case err != nil:
		return &jobError{program: j.argv[0], err: err, said: tail.lines}
	}
	return nil
}

// hostEnvironment is what every job gets: where programs are, and the host's
// way out through a proxy. Nothing else of this program's environment is any
// business of a package's scripts.
func hostEnvironment() []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"}
	for _, name := range []string{"http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
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
	for _, l := range e.said {
		if strings.HasPrefix(l, "E: ") && !strings.Contains(l, "run_chroot") || strings.Contains(l, "No space left on device") {
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		out = e.said
	}
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
