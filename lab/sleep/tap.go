package sleep

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Tap is one network card of a machine: the far end of a port of the switch.
type Tap struct {
	name string
	mac  net.HardwareAddr
	f    *os.File
}

// MTU is the largest packet that a lab's networks carry, as those of racks may. Machines
// begin with 1500, and use more when they are told to: translated ones spend their time on
// each packet, not on its bytes.
const MTU = 9000

// maxFrame is the longest frame that a port carries.
const maxFrame = 9216

// CreateTap makes a port's device in the network namespace of the calling thread.
// It stays until it is deleted. It is no error when it is there.
//
// It carries frames of [MTU].
func CreateTap(name string) error {
	fd, err := attach(name)
	if errors.Is(err, unix.EBUSY) {
		return nil // a machine holds it
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1); err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetMTU(link, MTU)
	}
	if err != nil {
		return fmt.Errorf("the MTU of %s: %w", name, err)
	}
	return nil
}

// OpenTap holds a port, whose link is up from then on. The calling thread is in the
// port's network namespace.
func OpenTap(name string, mac net.HardwareAddr) (*Tap, error) {
	fd, err := attach(name)
	if err != nil {
		return nil, err
	}
	// Only now: one that is not attached yet looks broken to those who wait for it.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &Tap{name: name, mac: mac, f: os.NewFile(uintptr(fd), name)}, nil
}

func attach(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("attach to %s: %w", name, err)
	}
	return fd, nil
}

// Lend gives a copy of the port for a process that is the machine while it runs.
// The caller closes it. Until Take nobody else may watch.
func (t *Tap) Lend() (*os.File, error) {
	var fd int
	err := t.control(func(own int) (err error) {
		fd, err = unix.FcntlInt(uintptr(own), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), t.name), nil
}

// Take takes the port back from a machine that went off, and throws away what came
// for it and was not read.
func (t *Tap) Take() error {
	if err := t.control(func(fd int) error { return unix.SetNonblock(fd, true) }); err != nil {
		return err
	}
	buf := make([]byte, maxFrame)
	for range 1 << 16 {
		n := 0
		err := t.control(func(fd int) (err error) { n, err = unix.Read(fd, buf); return err })
		if err != nil || n == 0 {
			return nil //nolint:nilerr // nothing more is there
		}
	}
	return nil
}

// Watch reads what comes until that is the magic packet (nil), ctx ends (its
// error), or the port is lost.
func (t *Tap) Watch(ctx context.Context) error {
	if err := t.f.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = t.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, maxFrame)
	for {
		n, err := t.f.Read(buf)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, unix.EIO) || errors.Is(err, unix.EBADFD) {
			return fmt.Errorf("port %s is gone: %w", t.name, err)
		}
		if err != nil {
			return err
		}
		if Magic(buf[:n], t.mac) {
			return nil
		}
	}
}

// SetCarrier plugs the cable in or pulls it: the switch sees its link.
func (t *Tap) SetCarrier(on bool) error {
	v := 0
	if on {
		v = 1
	}
	return t.control(func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TUNSETCARRIER, v); err != nil {
			return fmt.Errorf("carrier of %s: %w", t.name, err)
		}
		return nil
	})
}

// Close lets go of the port, whose link is down from then on.
func (t *Tap) Close() error { return t.f.Close() }

func (t *Tap) control(f func(fd int) error) error {
	raw, err := t.f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}
