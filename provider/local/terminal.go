package local

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal among those of a machine, so that programs in
// there find it by name; or one of the host where the machine's own does not
// work any more.
func (p *Provider) openTerminal(m *machine, pid, pidfd int) (master, slave *os.File, err error) {
	ns, err := namespaces(pid, pidfd, "mnt")
	if err != nil {
		return nil, nil, err
	}
	type pair struct{ master, slave *os.File }
	made := make(chan pair, 1)
	err = inside(ns[0], p.cfg.idBase(m.index), func() error {
		defer closeAll(ns)
		a, b, err := terminalAt("/dev/pts/ptmx")
		if err == nil {
			made <- pair{a, b}
		}
		return err
	})
	if err == nil {
		t := <-made
		return t.master, t.slave, nil
	}
	p.cfg.Log.Info("machine has no terminal, using one of the host", "machine", m.id, "error", err)
	return terminalAt("/dev/ptmx")
}

// terminalAt makes a terminal by its maker. Whatever a tenant put there
// instead is not taken: a maker knows a number for its terminal.
func terminalAt(maker string) (master, slave *os.File, err error) {
	flags := unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := unix.Open(maker, flags, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", maker, err)
	}
	fail := func(err error) (*os.File, *os.File, error) {
		_ = unix.Close(fd)
		return nil, nil, fmt.Errorf("%s: %w", maker, err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return fail(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return fail(err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return fail(errors.Join(errno))
	}
	return os.NewFile(uintptr(fd), "terminal"), os.NewFile(peer, "pts/"+strconv.Itoa(n)), nil
}
