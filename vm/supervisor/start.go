package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/process"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/jail"
	"github.com/muster-hpc/muster/vm/qemu"
)

// Spec is a machine that is to be started.
type Spec struct {
	// Dir is the machine's directory, of the server alone; it is made.
	Dir string
	// Machine is its hardware. Descriptors and the places of kernel and initramfs are filled in.
	Machine qemu.Machine
	// Kernel and Initramfs are files of the host that everybody may read.
	Kernel, Initramfs string
	// Disks and Taps are open, in the order in which Machine has disks and cards; a card has a tap for each of
	// its queues.
	Disks, Taps []*os.File
	// ID is the user and group of its QEMU, of nothing else on the host.
	ID int
	// Devices are those of the host that Machine names by their addresses.
	Devices []jail.Device
	// Locked is how many bytes of memory QEMU may lock; 0: none.
	Locked int64
	// Task is what its first program is told when it asks: a wire.BootTask. It holds a token.
	Task json.RawMessage
	// Enter puts the supervisor into its control groups, before anything else runs; nil: it stays
	// in the caller's.
	Enter func(pid int) error
	// Command starts a program that calls Run; nil: this program.
	Command []string
}

// startTime is how long QEMU may take until its monitor answers, also on a busy host.
const startTime = time.Minute

// Start starts the supervisor of a machine, and returns when its QEMU runs. Who is killed meanwhile leaves
// nothing, or a supervisor that Find finds.
func Start(ctx context.Context, s Spec) (*Supervisor, error) {
	m := s.Machine
	m.Disks, m.NICs = slices.Clone(m.Disks), slices.Clone(m.NICs)
	parts := lay(&m)
	if len(s.Disks) != len(m.Disks) || len(s.Disks)+len(s.Taps) != parts {
		return nil, errors.New("a machine needs a descriptor for each disk and each queue of a card")
	}
	m.Kernel, m.Initramfs = kernelPlace, initramfsPlace
	if err := m.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	for _, f := range []string{controlFile, qemuRecord, supervisorRecord} { // of an earlier machine
		if err := os.Remove(filepath.Join(s.Dir, f)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "supervisor"), os.NewFile(uintptr(pair[1]), "server")
	defer func() { _ = ours.Close(); _ = theirs.Close() }()
	command := s.Command
	if command == nil {
		command = []string{"/proc/self/exe"}
	}
	p, err := process.Start(ctx, process.Spec{
		Args: append(slices.Clone(command), Argument), Alone: true, Env: environment(),
		Log: Log(s.Dir), Record: filepath.Join(s.Dir, supervisorRecord),
		Files: append(append([]*os.File{theirs}, s.Disks...), s.Taps...),
	})
	if err != nil {
		return nil, err
	}
	_ = theirs.Close() // so that its end is heard
	k := &Supervisor{dir: s.Dir, process: p}
	o := order{Dir: s.Dir, Machine: m, ID: s.ID, Files: map[string]string{kernelPlace: s.Kernel, initramfsPlace: s.Initramfs}, Parts: parts, Locked: s.Locked, Devices: s.Devices, Task: s.Task}
	if err := k.hand(ctx, ours, &o, s.Enter); err != nil {
		err = errors.Join(err, k.Kill(context.WithoutCancel(ctx)))
		k.Close()
		return nil, err
	}
	return k, nil
}

// environment keeps a supervisor small: it does next to nothing, one thing at a time.
func environment() []string {
	return []string{"GOMAXPROCS=1", "GOGC=20", "GOMEMLIMIT=12MiB"}
}

// hand gives the supervisor its order and waits for its answer.
func (k *Supervisor) hand(ctx context.Context, sock *os.File, o *order, enter func(int) error) error {
	if enter != nil {
		if err := enter(k.process.PID()); err != nil {
			return fmt.Errorf("put the supervisor into its control groups: %w", err)
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = k.process.Kill() })
	defer stop()
	if err := writeLine(sock, o); err != nil {
		return fmt.Errorf("hand over to the supervisor: %w", err)
	}
	line, err := readLine(sock, maxLine)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the supervisor ended at once: %s", lastLine(Log(k.dir)))
	}
	var a started
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	if a.Error != "" {
		return fmt.Errorf("%s (%s)", a.Error, lastLine(Log(k.dir)))
	}
	return nil
}

// lastLine is how a log ends, for people: what QEMU complained of, if it did.
func lastLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "nothing is known of why"
	}
	lines := strings.Split(strings.TrimSpace(string(b[max(0, len(b)-4096):])), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.Contains(line, accel.Program) {
			return line
		}
	}
	return lines[len(lines)-1]
}
