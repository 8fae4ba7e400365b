package jail

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/seccomp"
)

// Enter makes of this process, the first one of new pid, mount, network, IPC and host name
// namespaces, the program of its order. It returns the exit status of what went wrong; otherwise it does not
// return.
func Enter() int {
	runtime.LockOSThread() // rights are a thread's
	if err := enter(); err != nil {
		fmt.Fprintln(os.Stderr, "E: cannot enter the jail:", err)
	}
	return 1
}

func enter() error {
	if os.Getpid() != 1 {
		return errors.New("the supervisor of a virtual machine starts this")
	}
	in := os.NewFile(orderFD, "order")
	o, err := readOrder(in)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"build its root", func() error { return buildRoot(o) }},
		{"set its limits", func() error { return limit(o) }},
		{"give up every right", func() error { return dropTo(o.ID) }},
		{"end with its supervisor", func() error { return endWith(in) }},
		{"close what it does not use", closeDoors},
	} {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	_ = in.Close()
	argv := append([]string{o.Program}, o.Args...)
	if err := unix.Exec(o.Program, argv, []string{"PATH=/usr/bin", "LANG=C.UTF-8"}); err != nil {
		return fmt.Errorf("start %s: %w", o.Program, err)
	}
	return nil
}

// limit bounds the process: no core, in which a tenant's memory would lie; no more open files or
// locked memory than it needs.
func limit(o *Order) error {
	locked := uint64(o.Locked)
	for _, l := range []struct {
		what int
		most uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, 1024}, {unix.RLIMIT_MEMLOCK, locked}} {
		r := unix.Rlimit{Cur: l.most, Max: l.most}
		if err := unix.Prlimit(0, l.what, &r, nil); err != nil {
			return err
		}
	}
	return nil
}

// dropTo becomes another user, for ever. Only this thread changes, and it alone goes on.
func dropTo(id int) error {
	for c := 0; ; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // there are no more
		} else if err != nil {
			return err
		}
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return e
	}
	n := uintptr(id)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, n, n, n); e != 0 {
		return e
	}
	// With the last of these IDs the kernel takes all capabilities.
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, n, n, n); e != 0 {
		return e
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// endWith has the kernel end this process with the one that started it. Becoming another user has
// undone that; who started it may be gone since.
func endWith(in *os.File) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(in.Fd())}}, 0)
	if err == nil && n > 0 {
		err = errors.New("who started it is gone")
	}
	return err
}

// closeDoors closes what no machine of this host is charged for, as to slices.
func closeDoors() error {
	f, err := seccomp.New(nil)
	if err != nil {
		return err
	}
	return f.Load()
}
