package device

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/muster-hpc/muster/vm/pci"
)

// Disks empties disks of this host, and proves that they are empty. Both open a disk for themselves alone.
type Disks interface {
	// Empty reports, as an error, that a disk of this size is not empty, or that somebody uses it.
	Empty(ctx context.Context, path string, size int64) error
	// Erase erases a disk of this size, and says what was read back.
	Erase(ctx context.Context, path string, size int64) (proof string, err error)
}

// Host is where devices are.
type Host struct {
	pci.Host
	// Proc is /proc, and Dev /dev.
	Proc, Dev string
	// Rules is where udev has its rules until the next boot; "": nobody asks.
	Rules string
	Disks Disks
	// Addresses counts those of an interface of the host.
	Addresses func(name string) (int, error)
	// Identify is what the controller of an NVMe says to Identify with this CNS.
	Identify func(path string, cns uint8) ([]byte, error)
	// Appear is how long is waited for a disk that its driver was given.
	Appear time.Duration
}

// This is the host that this program runs on.
func This(d Disks) Host {
	return Host{Host: pci.This(), Proc: "/proc", Dev: "/dev", Rules: "/run/udev/rules.d", Disks: d, Addresses: addresses, Identify: identify, Appear: 90 * time.Second}
}

func addresses(name string) (int, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	list, err := i.Addrs()
	n := 0
	for _, a := range list {
		if ip, ok := a.(*net.IPNet); !ok || !ip.IP.IsLinkLocalUnicast() { // those come by themselves
			n++
		}
	}
	return n, err
}

// Device is a device that can be given to virtual machines.
type Device struct {
	Address string
	ID      string // what is at that address
	Group   int    // of the IOMMU
	// NVMe: it is a disk, which is erased after each machine.
	NVMe bool
}

// classes of the PCI bus, without the programming interface where it does not matter.
const (
	classNVMe    = "0x010802"
	classStorage = "0x01"
	classBridge  = "0x06"
)

// id is what a device is: vendor, device, those of its board, class.
func (h Host) id(address string) (string, error) {
	var words []string
	for _, name := range []string{"vendor", "device", "subsystem_vendor", "subsystem_device", "class"} {
		s, err := pci.Text(h.Device(address, name))
		if err != nil {
			return "", err
		}
		words = append(words, strings.TrimPrefix(s, "0x"))
	}
	return strings.Join(words, ":"), nil
}

func (h Host) class(address string) (string, error) { return pci.Text(h.Device(address, "class")) }

// bridge reports whether a device belongs to no machine. Those stay the host's in every group.
func (h Host) bridge(address string) (bool, error) {
	c, err := h.class(address)
	return strings.HasPrefix(c, classBridge), err
}
