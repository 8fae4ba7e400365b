package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// On a host whose systemd rules a single control group hierarchy, machines
// live in a scope of their own, which systemd hands over (Delegate=yes): so a
// stop or an upgrade of the server's service does not touch them, and systemd
// does not touch what is below. A scope goes when its last process does, so
// the server keeps one small process in it for as long as it runs.

const (
	// scopeSlice is where the scopes of all instances are.
	scopeSlice = "muster.slice"
	// holdGroup is the group of the process that keeps the scope.
	holdGroup = "hold"
)

// scope keeps a delegated scope alive.
type scope struct {
	dir string
	cmd *exec.Cmd
	in  io.WriteCloser // its end tells the process to go
}

// systemdHost reports whether systemd is the host's init.
func systemdHost() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// scopeCommand asks systemd for a scope around cat, which ends when the server
// does, however that happens.
func scopeCommand(name string) []string {
	return []string{"systemd-run", "--scope", "--quiet", "--collect", "--unit=" + name, "--slice=" + scopeSlice,
		"--property=Delegate=yes", "--", "cat"}
}

// openScope makes sure that the scope exists below root, the mount point of
// the hierarchy, and that it stays.
func openScope(ctx context.Context, root, name string, command []string) (*scope, error) {
	s := &scope{dir: filepath.Join(root, scopeSlice, name+".scope")}
	_, err := os.Stat(s.dir)
	there := err == nil
	if there {
		command = []string{"cat"} // machines of an earlier server keep it so far
	}
	// Not bound to ctx: it ends with its input.
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("ask systemd for a scope: %w", err)
	}
	if err := s.hold(ctx); err != nil {
		return nil, errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// hold moves the process to a group of its own, because a group with
// controllers for those below cannot have processes itself.
func (s *scope) hold(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := poll(ctx, func() (bool, error) {
		_, err := os.Stat(s.dir)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("systemd made no scope %s: %w", s.dir, err)
	}
	at := filepath.Join(s.dir, holdGroup)
	if err := mkdir(at); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(at, "cgroup.procs"), []byte(strconv.Itoa(s.cmd.Process.Pid)), 0o644)
}

// close lets the process go. The scope stays while machines run in it.
func (s *scope) close(ctx context.Context) error {
	_ = s.in.Close()
	_ = s.cmd.Wait() // however it ended, it ended
	return removeTree(ctx, filepath.Join(s.dir, holdGroup))
}
