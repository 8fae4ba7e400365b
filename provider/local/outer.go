package local

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// outerArgument follows InitArgument for the process that makes a machine's inner
// user namespace.
const outerArgument = "outer"

// userCounts is where a process writes the bounds of its user namespace.
const userCounts = "/proc/sys/user"

// born is what the process in the outer namespace tells of the machine's first process.
type born struct {
	PID   int    `json:"pid"`
	Error string `json:"error,omitempty"`
}

// runOuter runs in a machine's outer user namespace. It bounds what the kernel counts
// there, starts the machine's first process one namespace further in, as a child of the
// server, and ends. The outer namespace stays as long as the inner one does.
func runOuter() int {
	sock := os.NewFile(initSocket, "server")
	if sock == nil {
		return 2
	}
	unix.CloseOnExec(initSocket)
	body, err := receiveBody(sock)
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		return 0 // the server went away
	}
	b, pid := &bounds{}, 0
	if err == nil {
		err = json.Unmarshal(body, b)
	}
	if err == nil {
		err = b.limitProcess(0)
	}
	if err == nil {
		err = b.set(userCounts)
	}
	if err == nil {
		pid, err = bear(sock)
	}
	answer := born{PID: pid}
	if err != nil {
		answer.Error = err.Error()
	}
	if tell(sock, answer) != nil || err != nil {
		return 1
	}
	return 0
}

// bear starts the first process of a machine in the machine's own namespaces.
func bear(sock *os.File) (int, error) {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1, Size: idRange}}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: os.Args[:len(os.Args)-1], Dir: "/", Env: os.Environ()}
	cmd.ExtraFiles = []*os.File{sock}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWNET | syscall.CLONE_PARENT,
		UidMappings:                ids,
		GidMappings:                ids,
		GidMappingsEnableSetgroups: true,
		Credential:                 &syscall.Credential{Uid: 0, Gid: 0},
		Setsid:                     true,
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}
