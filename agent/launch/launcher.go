package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Options say where things are. The zero value is a node with an image that has
// what measuring needs.
type Options struct {
	// Home is the account's; "" for wire.ProbeHome. It is in memory: keys for a
	// launch are written there, and removed after it.
	Home string
	// Programs is where the programs are; "" for /usr/libexec/muster.
	Programs string
	// Agent is the path of muster-agent; "" for this program's.
	Agent string
	// MPIRun starts programs; "" for /usr/bin/mpirun.
	MPIRun string
	// UID and GID run it; 0: wire.ProbeUID. Tests without root say -1: this
	// process's own.
	UID, GID int
	// MostBytes of output are kept; 0: wire.MaxLaunchBytes.
	MostBytes int64
}

// Launcher runs one launch after the other.
type Launcher struct{ o Options }

// New makes a Launcher.
func New(o Options) *Launcher {
	set := func(p *string, s string) {
		if *p == "" {
			*p = s
		}
	}
	set(&o.Home, wire.ProbeHome)
	set(&o.Programs, "/usr/libexec/muster")
	set(&o.MPIRun, "/usr/bin/mpirun")
	if o.Agent == "" {
		o.Agent, _ = os.Executable()
	}
	if o.UID == 0 {
		o.UID, o.GID = wire.ProbeUID, wire.ProbeUID
	}
	if o.MostBytes == 0 {
		o.MostBytes = wire.MaxLaunchBytes
	}
	return &Launcher{o}
}

// Ready reports whether the image has what measuring needs.
func (l *Launcher) Ready() bool {
	for _, path := range []string{l.o.MPIRun, filepath.Join(l.o.Programs, "muster-probe"), "/usr/bin/ssh"} {
		if st, err := os.Stat(path); err != nil || st.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// mostError is how much of the standard error is told.
const mostError = 2000

// Run runs what is ordered until it ends, its time is over, or ctx ends. What it
// printed is read from out, which the caller closes; nil if nothing ran. What an
// earlier launch left behind is ended first, and what this one leaves after it.
func (l *Launcher) Run(ctx context.Context, o wire.LaunchOrder) (end wire.LaunchEnd, out *os.File) {
	end = wire.LaunchEnd{ID: o.ID, Exit: -1}
	began := time.Now()
	defer func() { end.Seconds = time.Since(began).Seconds() }()
	args, err := l.command(o)
	if err == nil {
		err = l.sweep()
	}
	if err == nil {
		err = l.prepare(o)
	}
	defer func() {
		if err := l.clear(); err != nil && end.Error == "" {
			end.Exit, end.Error = -1, err.Error()
		}
	}()
	if err == nil && o.Scratch != "" {
		defer l.unscratch(o.Scratch, &end)
		err = l.scratch(o.Scratch)
	}
	if err == nil {
		out, err = os.CreateTemp(l.o.Home, "out-")
	}
	if err != nil {
		end.Error = err.Error()
		return end, nil
	}
	_ = os.Remove(out.Name()) // it goes with the last who reads it
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(o.Limit, muster.Duration(time.Second))))
	defer cancel()
	exit, text, cut := l.run(ctx, args, l.environment(o), o.Input, out)
	end.Exit, end.Error, end.Cut = exit, text, cut
	if ctx.Err() != nil {
		end.Exit = -1
		end.Error = fmt.Sprintf("it did not end within %v s", o.Limit.Seconds())
		if errors.Is(context.Cause(ctx), context.Canceled) {
			end.Error = "it was ended before it was done"
		}
		if text != "" {
			end.Error += ": " + text
		}
	}
	if err := l.sweep(); err != nil && end.Error == "" {
		end.Exit, end.Error = -1, err.Error()
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		end.Exit, end.Error = -1, err.Error()
	}
	return end, out
}

// command is what is executed. Everything in it is the server's word, and
// checked all the same: an argument must not become an option of mpirun.
func (l *Launcher) command(o wire.LaunchOrder) ([]string, error) {
	program := filepath.Join(l.o.Programs, o.Program)
	if o.Program == "muster-agent" {
		program = l.o.Agent
	}
	if !plainName(o.Program) {
		return nil, muster.Errorf(muster.EInvalid, "there is no program %q", o.Program)
	}
	if len(o.Hosts) == 0 {
		return nil, muster.Errorf(muster.EInvalid, "no hosts are named")
	}
	if len(o.Input) > wire.MaxLaunchInput {
		return nil, muster.Errorf(muster.EInvalid, "%d bytes are more than a program is given: %d", len(o.Input), wire.MaxLaunchInput)
	}
	each := max(1, o.PerHost)
	slots := make([]string, len(o.Hosts))
	for i, h := range o.Hosts {
		if !plainName(h) {
			return nil, muster.Errorf(muster.EInvalid, "%q is not a host", h)
		}
		slots[i] = fmt.Sprintf("%s:%d", h, each)
	}
	bind := "none"
	if o.Bind == "core" {
		bind = "core"
	}
	// In the order in which they are named: by node, mpirun would put the one that
	// launches first, and pairs would be others than those that were meant.
	place, dir := "seq", "/tmp"
	if each > 1 || o.Cores > 0 {
		place = fmt.Sprintf("ppr:%d:node", each)
	}
	if o.Cores > 0 {
		place, bind = place+fmt.Sprintf(":PE=%d", o.Cores), "core"
	}
	if len(o.Files) > 0 {
		dir = l.o.Home
	}
	args := []string{
		l.o.MPIRun, "--host", strings.Join(slots, ","), "-np", fmt.Sprint(each * len(o.Hosts)),
		"--map-by", place, "--bind-to", bind, "--wdir", dir,
	}
	for k := range o.Env {
		if !plainName(k) {
			return nil, muster.Errorf(muster.EInvalid, "%q is not an environment variable", k)
		}
		args = append(args, "-x", k)
	}
	return append(append(args, program), o.Args...), nil
}

// plainName reports whether s is a name that means nothing else to a program.
func plainName(s string) bool {
	if s == "" || len(s) > 253 || strings.HasPrefix(s, "-") || strings.HasPrefix(s, ".") {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(nameLetters, r) }) < 0
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// environment of mpirun. Releases 4 and 5 of Open MPI name things differently;
// each ignores what is not for it. All daemons are started from here: only here
// is a key.
func (l *Launcher) environment(o wire.LaunchOrder) []string {
	env := []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=" + l.o.Home, "TMPDIR=/tmp",
		"PRTE_MCA_plm=ssh", "PRTE_MCA_plm_ssh_no_tree_spawn=1", "PRTE_MCA_prte_silence_shared_fs=1",
		"OMPI_MCA_plm=rsh", "OMPI_MCA_plm_rsh_no_tree_spawn=1",
	}
	for k, v := range o.Env {
		env = append(env, k+"="+v)
	}
	return env
}

// run executes, and tells the exit status, the last words of the standard error,
// and whether the output was cut.
func (l *Launcher) run(ctx context.Context, args, env []string, input string, out *os.File) (exit int, text string, cut bool) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // the whole group is ended below
	cmd.Env, cmd.Dir = env, l.o.Home
	most := &bounded{w: out, left: l.o.MostBytes}
	last := &tail{most: mostError}
	cmd.Stdout, cmd.Stderr = most, last
	if input != "" { // mpirun passes it on to rank 0
		cmd.Stdin = strings.NewReader(input)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if l.o.UID > 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(l.o.UID), Gid: uint32(l.o.GID)}
	}
	cmd.WaitDelay = time.Second // what it left may hold the pipes open
	if err := cmd.Start(); err != nil {
		return -1, err.Error(), false
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		// mpirun ends its daemons on other nodes when it is asked to.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case err = <-done:
		case <-time.After(3 * time.Second):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			err = <-done
		}
	}
	text = last.String()
	var exitErr *exec.ExitError
	switch {
	case err == nil && most.cut:
		return -1, fmt.Sprintf("it printed more than %d bytes", l.o.MostBytes), true
	case err == nil:
		return 0, "", false
	case errors.As(err, &exitErr):
		if text == "" {
			text = exitErr.Error()
		}
		return exitErr.ExitCode(), text, most.cut
	}
	return -1, err.Error(), most.cut
}
