// Package siteprogram runs programs that a site brings, to switch its machines or set its
// switches: without a shell, in an environment of their own, and with nothing of theirs left
// when they have ended.
package siteprogram

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/cleantext"
)

const (
	maxErrors = 64 << 10 // bytes of its errors that are looked at
	maxSaid   = 200      // bytes of them that an error of ours repeats
	// drain is how long its streams are read after its end: something that it started in
	// the background may hold them open.
	drain = 500 * time.Millisecond
)

// Exit statuses by which a program says why it did not do what it was asked. All others mean
// that it failed.
const (
	ExitUnsupported = 2 // it cannot do this
	ExitRefused     = 3 // account or password
	ExitBusy        = 4 // not now: try again
	ExitUnknown     = 5 // it knows nothing of that name
)

// Environment is what every program gets: nothing of this server's own.
func Environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
}

// Program is one that is to be run.
type Program struct {
	Path  string
	Args  []string
	Env   []string
	Stdin []byte // nil: nothing
	Most  int    // bytes kept of what it prints
}

// Output is what it printed.
type Output struct {
	Out  []byte // at most Most bytes
	Over bool   // there was more
	Said []byte // the beginning of its standard error
}

// Run runs a program until it ends or ctx does; then it is killed. Errors are ctx's, those of
// the start, and *exec.ExitError.
func (p Program) Run(ctx context.Context) (Output, error) {
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Env, cmd.Dir = p.Env, "/"
	if p.Stdin != nil {
		cmd.Stdin = bytes.NewReader(p.Stdin)
	}
	out, said := &bounded{most: p.Most}, &bounded{most: maxErrors}
	cmd.Stdout, cmd.Stderr = out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drain
	if err := cmd.Start(); err != nil {
		return Output{}, err
	}
	ended(cmd.Process.Pid)
	// What it left behind in its group goes with it. The group keeps its number until the
	// program was waited for, so that no other one is hit.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	err := cmd.Wait()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = ctx.Err()
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil
	}
	return Output{Out: out.b.Bytes(), Over: out.over, Said: said.b.Bytes()}, err
}

// Line makes the first line of what a program said fit for an error: without control
// characters, and without a secret, should it repeat that.
func Line(said, secret []byte) string {
	if len(secret) > 0 {
		said = bytes.ReplaceAll(said, secret, []byte("(password)"))
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return cleantext.Cut(cleantext.Line(line), maxSaid)
}

// ended returns once the process ended, and leaves it to be waited for.
func ended(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		continue
	}
}

// bounded keeps the first bytes and lets the others go.
type bounded struct {
	b    bytes.Buffer
	most int
	over bool
}

func (w *bounded) Write(p []byte) (int, error) {
	keep := min(len(p), w.most-w.b.Len())
	w.over = w.over || keep < len(p)
	w.b.Write(p[:keep])
	return len(p), nil
}
