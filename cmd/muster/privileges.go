package main

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// giveUpPrivileges takes every capability from all threads of this process for good, and what they run gets none. errors.ErrUnsupported: this
// build cannot (with cgo, as the race detector has it).
func giveUpPrivileges() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0)
	if errno == 0 {
		_, _, errno = syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0)
	}
	switch {
	case errors.Is(errno, syscall.ENOTSUP):
		return errors.ErrUnsupported
	case errno != 0:
		return os.NewSyscallError("give up privileges", errno)
	}
	return nil
}
