package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Mark is the environment variable that names the lab a process belongs to.
const Mark = "MUSTER_LAB"

// Spec is a process to be started.
type Spec struct {
	Args []string
	Env  []string // beside the caller's, or alone
	// Alone: nothing of the caller's environment is passed on.
	Alone  bool
	Log    string // file that gets what it prints; added to
	Record string // file with which Find finds it again
	Lab    string // value of Mark; "": it bears none
	// Files are inherited, from descriptor 3 on.
	Files []*os.File
	// In runs a function in the network namespace of the process; nil: the
	// caller's.
	In func(func() error) error
}

// Start starts a process in a session of its own and writes its record. It does
// not wait until the process is of any use.
func Start(ctx context.Context, s Spec) (*Process, error) {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// Not bound to ctx: it is to outlive this command.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), s.Args[0], s.Args[1:]...) //nolint:gosec // the lab's own programs
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	if !s.Alone {
		cmd.Env = WithoutMark(os.Environ())
	}
	cmd.Env = append(cmd.Env, s.Env...)
	if s.Lab != "" {
		cmd.Env = append(cmd.Env, Marked(s.Lab))
	}
	cmd.ExtraFiles = s.Files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in := s.In
	if in == nil {
		in = func(f func() error) error { return f() }
	}
	if err := in(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(s.Args[0]), err)
	}
	// As long as this process lives, it is the one that must take note of the end.
	go func() { _ = cmd.Wait() }()
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		return nil, fmt.Errorf("%s ended at once; see %s: %w", filepath.Base(s.Args[0]), s.Log, err)
	}
	if err := p.Write(s.Record); err != nil {
		_ = p.Kill()
		p.Close()
		return nil, err
	}
	return p, nil
}

// Marked is what the environment of a lab's process has beside that of others.
func Marked(lab string) string { return Mark + "=" + lab }

// WithoutMark is an environment without the mark, for what is not to end with the
// lab.
func WithoutMark(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, Mark+"=") })
}
