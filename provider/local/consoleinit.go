package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// consoleArgument follows InitArgument for the process that becomes a shell inside a
// machine.
const consoleArgument = "console"

// consoleOrder is what that process is told.
type consoleOrder struct {
	Enter  string   `json:"enter"` // nsenter
	Open   []string `json:"open,omitempty"`
	Limits []limit  `json:"limits"`
}

// runConsole waits on the host until the server has put this process into the machine's
// control groups, which entering namespaces does not do, and then becomes a shell
// inside, under the limits and the filter that every process of the machine has.
//
// The word to go on comes by the standard input, which is the terminal from then on. The
// namespaces are descriptors 3 to 9: so no number can change hands, and every sh can
// close them.
func runConsole(args []string) int {
	err := becomeShell(args)
	fmt.Fprintln(os.Stderr, "no shell:", err)
	return 1
}

func becomeShell(args []string) error {
	if len(args) != 1 {
		return errors.New("the server starts this inside a machine")
	}
	var o consoleOrder
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	for one := make([]byte, 1); one[0] != '\n'; {
		if n, err := os.Stdin.Read(one); n == 0 || err != nil {
			return errors.New("the server went away")
		}
	}
	if err := unix.Dup3(1, 0, 0); err != nil {
		return err
	}
	if err := (&bounds{Limits: o.Limits}).limitProcess(0); err != nil {
		return err
	}
	if err := closeDoors(o.Open); err != nil {
		return err
	}
	argv := []string{"nsenter"}
	for i, kind := range shellNamespaces() {
		if kind == "mnt" {
			kind = "mount"
		}
		argv = append(argv, fmt.Sprintf("--%s=/proc/self/fd/%d", kind, 3+i))
	}
	argv = append(argv, "--setuid=0", "--setgid=0", "--", "/bin/sh", "-c", shellScript)
	return unix.Exec(o.Enter, argv, os.Environ())
}

// shellScript runs inside the machine.
const shellScript = `exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-; cd /root 2>/dev/null || cd /; ` +
	`command -v bash >/dev/null && exec bash -l; exec sh -l`

// shellNamespaces are the namespaces that a shell enters, in the order of their
// descriptors.
func shellNamespaces() []string { return []string{"user", "mnt", "ipc", "net", "pid", "cgroup", "uts"} }
