package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/muster-hpc/muster/internal/inherit"
	"github.com/muster-hpc/muster/internal/procstat"
	"github.com/muster-hpc/muster/provider/local/network"
	"golang.org/x/sys/unix"
)

// idRange is how many user and group IDs a machine has.
const idRange = 65536

// process is the first process of a machine while it is a child of the server.
type process struct {
	child  *os.Process
	pidfd  int
	sock   *os.File
	outer  *exec.Cmd  // starts it; it ends before anything else is done
	shares chan []int // mounts to put into the antechamber; closed to leave it
	placed chan error
	left   sync.Once
}

// spawn starts the first process of a machine in new namespaces. It waits to
// hear from the server, and ends when the server goes away first.
//
// It starts in an antechamber: a mount namespace that belongs to the host's
// root, into which shares are put. When the process then makes its own mount
// namespace, the kernel locks them as they are; mounts handed over directly
// could be made writable by root inside.
//
// Its user namespace lies within another, the outer one, in which nothing runs. Both
// belong to owner, a host user of this machine alone: so the kernel counts what it
// keeps for the machine under a user whom no other machine shares, and bounds it in a
// namespace that nobody inside can reach.
func spawn(command []string, idBase, owner int, b *bounds) (*process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "machine"), os.NewFile(uintptr(pair[1]), "server")
	defer func() { _ = theirs.Close() }()
	p := &process{pidfd: -1, sock: ours, shares: make(chan []int), placed: make(chan error, 1)}
	// The server's own executable is reached through /proc: its path may lie in
	// a directory that the machine's root may not enter.
	p.outer = &exec.Cmd{Path: command[0], Args: append(slices.Clone(command), outerArgument), Dir: "/",
		Env: []string{"GOMAXPROCS=2", "GOGC=off"}}
	p.outer.ExtraFiles = []*os.File{theirs}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: owner, Size: 1}, {ContainerID: 1, HostID: idBase, Size: idRange}}
	p.outer.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER,
		UidMappings:                ids,
		GidMappings:                ids,
		GidMappingsEnableSetgroups: true,
		Credential:                 &syscall.Credential{Uid: 0, Gid: 0},
	}
	started := make(chan error)
	network.OwnThread(func() { p.enterAntechamber(owner, started) })
	if err = <-started; err == nil {
		_ = theirs.Close() // so that the end of the process is heard
		err = p.meet(b)
		if err != nil {
			p.leave()
		}
	}
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start a process in new namespaces: %w", err)
	}
	return p, nil
}

// meet makes the outer process start the machine's first one, and opens that.
func (p *process) meet(b *bounds) error {
	pid := p.outer.Process.Pid
	// A server that lacks CAP_SYS_RESOURCE (in a container, for instance) leaves it to
	// the process, which can lower its limits and not raise them.
	err := b.limitProcess(pid)
	if err == nil || errors.Is(err, unix.EPERM) {
		err = sendBounds(p.sock, b)
	}
	if err != nil {
		_ = p.outer.Process.Kill()
		_ = p.outer.Wait()
		return err
	}
	at, err := receiveBorn(p.sock)
	ended := p.outer.Wait()
	if err == nil && at.Error != "" {
		err = errors.New(at.Error)
	}
	if err != nil {
		return errors.Join(err, ended)
	}
	// It is a child of this process and nobody reaps it before us, so the number is
	// its own.
	if p.child, err = os.FindProcess(at.PID); err == nil {
		p.pidfd, err = unix.PidfdOpen(at.PID, 0)
	}
	return err
}

// end kills the process and reaps it.
func (p *process) end() {
	p.leave()
	_ = p.sock.Close()
	_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
	_, _ = p.child.Wait()
	_ = unix.Close(p.pidfd)
}

// antechamber is where shares stand in the antechamber.
const antechamber = "/tmp"

// enterAntechamber runs on a thread of its own, which ends with it.
func (p *process) enterAntechamber(owner int, started chan<- error) {
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = actAs(owner)
	}
	if err == nil {
		inherit.Seal()
		err = p.outer.Start()
	}
	if err == nil {
		err = actAs(0)
	}
	started <- err
	if err != nil {
		return
	}
	if fds, ok := <-p.shares; ok {
		p.placed <- placeShares(fds)
	}
}

// actAs makes this thread act as another user without giving up what it may: the
// kernel writes down the acting user as the owner of a namespace that it makes. Only
// this thread changes, which a function of package syscall would not do.
func actAs(uid int) error {
	const keepRights = 1 << 2 // SECBIT_NO_SETUID_FIXUP of linux/securebits.h
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, keepRights, 0, 0, 0); err != nil {
		return fmt.Errorf("act as the machine's owner: %w", err)
	}
	same := ^uintptr(0)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(uid), same); e != 0 {
		return fmt.Errorf("act as the machine's owner: %w", e)
	}
	return nil
}

// placeShares puts mounts where the first process will look for them.
func placeShares(fds []int) error {
	if err := unix.Mount("tmpfs", antechamber, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=64k"); err != nil {
		return fmt.Errorf("make a place for shares: %w", err)
	}
	for i, fd := range fds {
		at := sharePlace(i)
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("place a share: %w", err)
		}
	}
	return nil
}

func sharePlace(i int) string { return antechamber + "/share" + strconv.Itoa(i) }

// place puts shares into the antechamber, once.
func (p *process) place(fds []int) error {
	defer p.leave()
	if len(fds) == 0 {
		return nil
	}
	p.shares <- fds
	return <-p.placed
}

// leave ends the server's part in the antechamber.
func (p *process) leave() { p.left.Do(func() { close(p.shares) }) }

func (p *process) pid() int { return p.child.Pid }

// namespace opens one namespace of the process: user, net, mnt.
func (p *process) namespace(kind string) (*os.File, error) {
	return os.Open(fmt.Sprintf("/proc/%d/ns/%s", p.pid(), kind))
}

// raise sets what only the host's root may set, before the process goes on.
func (p *process) raise() error {
	// The lowest value ever set by the host's root is how far the machine may
	// later go down by itself; the first process goes back to 0 at once.
	err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.pid()), []byte("-500"), 0o644)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return nil
	}
	return err
}

// start hands the configuration over and waits until the image's init runs.
func (p *process) start(ctx context.Context, cfg *initConfig, fds []int) error {
	stop := context.AfterFunc(ctx, func() { _ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0) })
	defer stop()
	defer func() { _ = p.sock.Close() }()
	if err := sendInit(p.sock, cfg, fds); err != nil {
		return err
	}
	dec := bufio.NewScanner(p.sock)
	dec.Buffer(nil, 1<<20)
	last := "hear from the server"
	for dec.Scan() {
		var r initReport
		if err := json.Unmarshal(dec.Bytes(), &r); err != nil {
			return err
		}
		last = r.Step
		if r.Error != "" {
			return fmt.Errorf("%s: %s", r.Step, r.Error)
		}
	}
	if err := dec.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if last != "exec" {
		return fmt.Errorf("the first process ended after: %s", last)
	}
	return nil
}

// startTime is when a process began, in clock ticks since the host booted:
// with the number it names a process for ever.
func startTime(pid int) (uint64, error) {
	s, err := procstat.Read(pid)
	return s.Start, err
}

// bootTimeout bounds the time until the image's init runs.
const bootTimeout = 20 * time.Second
