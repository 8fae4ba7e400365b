package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/process"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/jail"
	"github.com/muster-hpc/muster/vm/qemu"
	"github.com/muster-hpc/muster/vm/qmp"
)

// vm is a machine, in its supervisor.
type vm struct {
	jail    *jail.Jail
	monitor *qmp.Monitor
	console *console
	task    *task
	since   time.Time
	logged  <-chan struct{} // closed when all that QEMU said is written
}

// Run is the life of a supervisor. It returns the exit status: 0 once the machine has ended by itself.
func Run() int {
	sock := os.NewFile(orderFD, "server")
	line, err := readLine(sock, maxLine)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm-supervisor is not a command for people: the server starts it")
		return 2
	}
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	v, ln, err := begin(ctx, line)
	clear(line) // it held a token
	if err != nil {
		_ = writeLine(sock, started{Error: err.Error()})
		return 1
	}
	_ = writeLine(sock, started{QEMU: v.jail.PID()}) // who asked may be gone
	_ = sock.Close()
	debug.FreeOSMemory()
	go v.serve(ctx, ln)
	select {
	case <-v.jail.Done():
	case <-ctx.Done():
		v.jail.Kill()
		<-v.jail.Done()
	}
	_ = ln.Close()
	<-v.logged
	if err := v.jail.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "QEMU ended:", err)
		return 1
	}
	return 0
}

// begin starts the machine of an order.
func begin(ctx context.Context, line []byte) (*vm, net.Listener, error) {
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return nil, nil, err
	}
	parts, err := o.taken()
	if err != nil {
		return nil, nil, err
	}
	if err := o.Machine.Check(); err != nil {
		return nil, nil, err
	}
	v := &vm{console: newConsole(), task: &task{text: append(json.RawMessage(nil), o.Task...)}, since: time.Now()}
	if len(o.Task) == 0 {
		v.task.text = nil
	}
	var ours []net.Conn
	var theirs []*os.File
	defer func() {
		for _, f := range append(theirs, parts...) {
			_ = f.Close() // QEMU has them
		}
	}()
	for _, name := range []string{"monitor", "console", "channel"} {
		conn, file, err := pair(name)
		if err != nil {
			return nil, nil, err
		}
		ours, theirs = append(ours, conn), append(theirs, file)
	}
	ln, err := listen(ctx, o.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open the supervisor's socket: %w", err)
	}
	if err := v.start(ctx, &o, append(append([]*os.File(nil), theirs...), parts...), ours); err != nil {
		_ = ln.Close()
		return nil, nil, err
	}
	return v, ln, nil
}

// start starts QEMU, and returns when its monitor answers.
func (v *vm) start(ctx context.Context, o *order, files []*os.File, ours []net.Conn) error {
	log, logged, err := complaints(os.Stderr)
	if err != nil {
		return err
	}
	v.logged = logged
	v.jail, err = jail.Start([]string{"/proc/self/exe"}, &jail.Order{
		Program: "/usr/bin/" + accel.Program, Args: qemu.Args(&o.Machine), ID: o.ID, Files: o.Files, KVM: o.Machine.KVM, Locked: o.Locked, Devices: o.Devices,
	}, files, log)
	_ = log.Close() // QEMU has it
	if err != nil {
		return err
	}
	undo := func(err error) error {
		v.jail.Kill()
		<-v.jail.Done()
		<-v.logged
		return err
	}
	// It may be killed now, and must be found.
	p, err := process.Open(v.jail.PID())
	if err != nil {
		return undo(fmt.Errorf("QEMU ended at once: %w", err))
	}
	err = p.Write(filepath.Join(o.Dir, qemuRecord))
	p.Close()
	if err != nil {
		return undo(err)
	}
	go v.console.follow(ours[1])
	v.task.out = ours[2]
	go v.task.answer(ours[2], time.Now)
	go func() { // do not wait for the answer of one that has ended
		<-v.jail.Done()
		for _, c := range ours {
			_ = c.Close()
		}
	}()
	try, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if v.monitor, err = qmp.NewMonitor(try, ours[0], func(qmp.Event) {}); err != nil {
		return undo(fmt.Errorf("QEMU did not start: %w", err))
	}
	return nil
}

// pair makes two connected sockets, ours as a connection.
func pair(name string) (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name)
	conn, err := net.FileConn(mine)
	_ = mine.Close()
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}
