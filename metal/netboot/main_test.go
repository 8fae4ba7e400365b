package netboot_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestMain runs the tests in a network namespace of their own, which ends with
// them: DHCP servers belong on no network that anybody uses. Who is not root runs
// what needs none.
func TestMain(m *testing.M) {
	const inside = "MUSTER_NETBOOT_NETNS"
	if os.Getuid() != 0 || os.Getenv(inside) != "" {
		os.Exit(m.Run())
	}
	self := exec.Command("/proc/self/exe", os.Args[1:]...)
	self.Env = append(os.Environ(), inside+"=1")
	self.Stdin, self.Stdout, self.Stderr = os.Stdin, os.Stdout, os.Stderr
	self.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := self.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "no network namespace can be made here:", err)
		os.Setenv(inside, "none")
		os.Exit(m.Run())
	}
}
