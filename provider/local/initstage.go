package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/muster-hpc/muster/internal/seccomp"
	"golang.org/x/sys/unix"
)

// InitArgument is the first argument that makes a program act as the first
// process of a machine; see MachineInit.
const InitArgument = "machine-init"

// initSocket is the descriptor on which the first process hears from the
// server.
const initSocket = 3

// MachineInit is the first process of a machine: it runs inside the new
// namespaces, builds the file system and becomes the image's init. It does not
// return when all goes well; otherwise the result is the exit status. A program
// that starts machines calls it first thing when its first argument is
// InitArgument, before anything else is set up.
func MachineInit() int {
	runtime.LockOSThread()
	if len(os.Args) > 2 {
		switch os.Args[2] {
		case outerArgument:
			return runOuter()
		case consoleArgument:
			return runConsole(os.Args[3:])
		}
	}
	sock := os.NewFile(initSocket, "server")
	if sock == nil || os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "machine-init is not a command for people: the server starts it inside a machine")
		return 2
	}
	unix.CloseOnExec(initSocket)
	cfg, fds, err := receiveInit(sock)
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		return 0 // the server went away before it said go
	}
	step := "hear from the server"
	if err == nil && cfg.Trial != nil {
		step = "close what machines do not use"
		err = closeDoors(cfg.Open)
	}
	if err == nil && cfg.Trial != nil {
		if step, err = "try the machine", runTrial(cfg, func(r trialReport) error { return tell(sock, r) }); err == nil {
			// The machine's links go with this process, and the server counts their
			// frames last: it hangs up after that.
			_, _ = sock.Read(make([]byte, 1))
			return 0
		}
	} else if err == nil {
		step, err = becomeMachine(cfg, fds, func() error { return report(sock, initReport{Step: "exec"}) })
	}
	_ = report(sock, initReport{Step: step, Error: err.Error()})
	return 1
}

func report(sock *os.File, r initReport) error { return tell(sock, r) }

func tell(sock *os.File, r any) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = sock.Write(append(b, '\n'))
	return err
}

// becomeMachine does the steps in order and returns the name of the one that
// failed.
func becomeMachine(cfg *initConfig, fds []int, ready func() error) (string, error) {
	links := make(chan error, 1)
	go func() { links <- setLinks(cfg) }()
	steps := []struct {
		name string
		do   func() error
	}{
		{"separate mounts and control groups", func() error { return unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP) }},
		{"build the root file system", func() error { return buildRoot(cfg, fds) }},
		{"set the host name", func() error { return unix.Sethostname([]byte(cfg.Hostname)) }},
		{"set up network links", func() error { return <-links }},
		{"allow processes to be preferred", func() error { return os.WriteFile("/proc/self/oom_score_adj", []byte("0"), 0) }},
		{"close what machines do not use", func() error { return closeDoors(cfg.Open) }},
		{"tell the server", ready},
		{"start init", func() error { return execInit(cfg) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return s.name, err
		}
	}
	return "start init", errors.New("exec returned")
}

// closeDoors makes the kernel refuse what no machine is charged for, to this thread and
// to all that follows from it.
func closeDoors(open []string) error {
	f, err := seccomp.New(open)
	if err != nil {
		return err
	}
	return f.Load()
}

// execInit becomes the image's init.
func execInit(cfg *initConfig) error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return err
		}
	}
	// Whatever this process inherited must not reach the image.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if len(cfg.Argv) == 0 {
		return errors.New("no init to start")
	}
	// The runtime of Go has raised what it may open; programs start with the usual.
	var files unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &files); err != nil {
		return err
	}
	files.Cur = min(1024, files.Max)
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &files, nil); err != nil {
		return err
	}
	unix.Umask(0o022)
	if err := unix.Exec(cfg.Argv[0], cfg.Argv, cfg.Env); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cfg.Argv, " "), err)
	}
	return nil
}
