package sleep

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Speeds of a machine's links, in bits/s.
const (
	// SlowLink is what a card agrees on while its machine is off: the slowest that it
	// knows needs the least power.
	SlowLink int64 = 10e6
	FullLink int64 = 10e9
)

// SetSpeed says what the port's link carries, as the two ends of a wire agree on it:
// bits/s. It changes no rate of frames, and the switch looks again only when the link
// changes. The calling thread is in the port's network namespace.
func (t *Tap) SetSpeed(bits int64) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	c := settings{command: unix.ETHTOOL_GSET}
	if err := c.do(fd, t.name); err != nil {
		return fmt.Errorf("speed of %s: %w", t.name, err)
	}
	megabits := uint32(bits / 1e6)
	c.command, c.speed, c.speedHigh, c.duplex = unix.ETHTOOL_SSET, uint16(megabits), uint16(megabits>>16), fullDuplex
	if err := c.do(fd, t.name); err != nil {
		return fmt.Errorf("set the speed of %s: %w", t.name, err)
	}
	return nil
}

const fullDuplex = 1

// settings are the kernel's struct ethtool_cmd.
type settings struct {
	command, supported, advertising uint32
	speed                           uint16 // Mb/s
	duplex, port, phy, transceiver  uint8
	autoneg, mdioSupport            uint8
	_, _                            uint32
	speedHigh                       uint16
	mdix, mdixControl               uint8
	partner                         uint32
	_, _                            uint32
}

func (c *settings) do(fd int, name string) error {
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the kernel's struct is as long as its longest member
	}
	copy(req.name[:unix.IFNAMSIZ-1], name)
	req.data = unsafe.Pointer(c)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	if errno != 0 {
		return errno
	}
	return nil
}
