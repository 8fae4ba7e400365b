package local

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/inherit"
	"golang.org/x/sys/unix"
)

// Console connects to a machine's console: what it printed, or a shell of its
// root.
func (p *Provider) Console(ctx context.Context, id muster.MachineID, shell bool) (io.ReadWriteCloser, error) {
	m, err := p.machine(id)
	if err != nil {
		return nil, err
	}
	if !shell {
		return m.console.read(), nil
	}
	m.mu.Lock()
	if m.vm {
		// Its first process is one of the host's own: a shell there would be the host's.
		m.mu.Unlock()
		return nil, muster.Errorf(muster.EConflict, "machine %s is a virtual machine: there is no shell at its console", id).Because(muster.ReasonNoConsole).
			WithHint("log in by ssh")
	}
	pidfd, pid := m.rec.open(), 0
	if pidfd >= 0 {
		pid = m.rec.PID
	}
	m.mu.Unlock()
	if pidfd < 0 {
		return nil, muster.Errorf(muster.EConflict, "machine %s is off", id).Because(muster.ReasonNoConsole)
	}
	defer func() { _ = unix.Close(pidfd) }()
	if p.groups.frozen(string(id)) {
		return nil, muster.Errorf(muster.EConflict, "machine %s is frozen: a shell in it would be, too", id).Because(muster.ReasonNoConsole)
	}
	enter, err := exec.LookPath("nsenter")
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "this host has no nsenter").Because(muster.ReasonProgramMissing).WithHint("apt-get install util-linux on the server")
	}
	s, err := p.openShell(ctx, m, enter, pid, pidfd)
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "no shell in machine %s: %v", id, err).Because(muster.ReasonNoConsole).Wrap(err)
	}
	return s, nil
}

// shell is a process in a machine, with a terminal of its own.
type shell struct {
	terminal *os.File
	cmd      *exec.Cmd
	group    string // its control group
	done     chan struct{}
	once     sync.Once
}

func (p *Provider) openShell(ctx context.Context, m *machine, enter string, pid, pidfd int) (*shell, error) {
	ns, err := namespaces(pid, pidfd, shellNamespaces()...)
	if err != nil {
		return nil, err
	}
	defer closeAll(ns)
	master, slave, err := p.openTerminal(m, pid, pidfd)
	if err != nil {
		return nil, err
	}
	defer func() { _ = slave.Close() }()
	s := &shell{terminal: master, done: make(chan struct{}),
		group: filepath.Join(p.groups.unified, string(m.id), "muster-console-"+strings.ToLower(rand.Text()[:8]))}
	ready, goAhead, err := os.Pipe()
	if err != nil {
		_ = master.Close()
		return nil, err
	}
	defer func() { _ = ready.Close(); _ = goAhead.Close() }()
	order, err := json.Marshal(consoleOrder{Enter: enter, Open: p.cfg.Open, Limits: p.boundsOf(m).Limits})
	if err != nil {
		_ = master.Close()
		return nil, err
	}
	command := append(slices.Clone(p.cfg.InitCommand), consoleArgument, string(order))
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = ready, slave, slave
	s.cmd.ExtraFiles = ns
	s.cmd.Dir = "/"
	s.cmd.Env = []string{"TERM=xterm-256color", "HOME=/root", "USER=root", "LOGNAME=root", "LANG=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	inherit.Seal()
	if err := s.cmd.Start(); err != nil {
		_ = master.Close()
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.done)
	}()
	// In a group of its own: where the machine's init has made groups below the
	// top one, the top one may hold no process.
	err = errors.Join(mkdir(s.group), p.groups.enterAt(string(m.id), s.group, s.cmd.Process.Pid))
	if err == nil {
		_, err = goAhead.WriteString("go\n")
	}
	if err != nil {
		_ = s.cmd.Process.Kill()
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// enterAt is enter with another unified group.
func (g *groups) enterAt(id, unified string, pid int) error {
	dirs := []string{unified}
	for _, dir := range g.v1 {
		dirs = append(dirs, filepath.Join(dir, id))
	}
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Read reads what the shell says.
func (s *shell) Read(b []byte) (int, error) {
	n, err := s.terminal.Read(b)
	if errors.Is(err, unix.EIO) || errors.Is(err, os.ErrClosed) {
		err = io.EOF // the last process has let go of the terminal
	}
	return n, err
}

// Write types.
func (s *shell) Write(b []byte) (int, error) { return s.terminal.Write(b) }

// Resize tells the shell how large the terminal of its user is.
func (s *shell) Resize(columns, rows int) error {
	raw, err := s.terminal.SyscallConn()
	if err != nil {
		return err
	}
	size := &unix.Winsize{Col: uint16(max(0, min(columns, 4096))), Row: uint16(max(0, min(rows, 4096)))}
	if cerr := raw.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) }); cerr != nil {
		return cerr
	}
	return err
}

// Close hangs up, and ends what does not end by that.
func (s *shell) Close() error {
	s.once.Do(func() {
		_ = s.terminal.Close()
		select {
		case <-s.done:
		case <-time.After(300 * time.Millisecond):
		}
		_ = os.WriteFile(filepath.Join(s.group, "cgroup.kill"), []byte("1"), 0o644)
		ctx, cancel := context.WithTimeout(context.Background(), exitTime)
		defer cancel()
		_ = removeTree(ctx, s.group) // the machine's end removes what is left
		select {
		case <-s.done:
		case <-ctx.Done():
		}
	})
	return nil
}
