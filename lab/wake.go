package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/lab/machine"
	"github.com/muster-hpc/muster/lab/sleep"
	"github.com/muster-hpc/muster/provider/local/network"
)

// Wake sends the magic packet of machines from the server's interface. Whether one
// wakes is for it to show.
func (l *Lab) Wake(ctx context.Context, machines []string) error {
	names, err := l.pick(machines)
	if err != nil {
		return err
	}
	c, err := l.Config()
	if err != nil {
		return err
	}
	device := Inside
	if c.Uplink != "" {
		device = c.Uplink
	}
	return l.server(func() error {
		for _, m := range l.plan(c) {
			for _, n := range names {
				if n != m.Name {
					continue
				}
				mac, err := net.ParseMAC(m.NICs[0].MAC)
				if err != nil {
					return err
				}
				if err := send(device, mac); err != nil {
					return muster.Errorf(muster.EUnavailable, "the magic packet for %s could not be sent: %v", n, err).WithHint("run 'muster lab up --dir %s' again: it starts what is missing", l.dir)
				}
			}
		}
		return ctx.Err()
	})
}

// server runs f where the server's interface is.
func (l *Lab) server(f func() error) error {
	c, err := l.Config()
	if err != nil {
		return err
	}
	if c.Uplink != "" {
		return f()
	}
	ns, err := network.OpenNamespace(l.Namespace(), false)
	if errors.Is(err, os.ErrNotExist) {
		return muster.Errorf(muster.EUnavailable, "the lab in %s has no network", l.dir).WithHint("run 'muster lab up --dir %s' again: it starts what is missing", l.dir)
	}
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	return ns.Do(f)
}

// Enter brings the calling thread, which must be locked, to where the server's
// interface is, for a program that is to run there.
func (l *Lab) Enter() error {
	c, err := l.Config()
	if err != nil || c.Uplink != "" {
		return err
	}
	ns, err := network.OpenNamespace(l.Namespace(), false)
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "the lab in %s has no network", l.dir).WithHint("run 'muster lab up --dir %s' again: it starts what is missing", l.dir).Wrap(err)
	}
	defer func() { _ = ns.Close() }()
	return unix.Setns(int(ns.File().Fd()), unix.CLONE_NEWNET)
}

// send puts one magic packet on an interface.
func send(device string, mac net.HardwareAddr) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Halen: 6}
	if err := unix.Sendto(fd, sleep.Frame(link.Attrs().HardwareAddr, mac), 0, to); err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	return nil
}

// Console is where the machine's console is: what it printed, and the socket to type
// into, which is there while the machine is on.
func (l *Lab) Console(name string) (file, socket string, err error) {
	names, err := l.pick([]string{name})
	if err != nil {
		return "", "", err
	}
	dir := l.machineDir(names[0])
	return machine.ConsoleLog(dir), machine.ConsoleSocket(dir), nil
}
