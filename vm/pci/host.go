package pci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// VFIO is the driver of the kernel by which QEMU has a device.
const VFIO = "vfio-pci"

// Host is where the devices of a host are.
type Host struct {
	// Dir is /sys.
	Dir string
	// Write writes to a file below Dir that is there; nil: as it is.
	Write func(path, text string) error
}

// This is the host that this program runs on.
func This() Host { return Host{Dir: "/sys"} }

// Device is the directory of a device, or something in it.
func (h Host) Device(address string, names ...string) string {
	return filepath.Join(append([]string{h.Dir, "bus/pci/devices", address}, names...)...)
}

// There reports whether there is such a device.
func (h Host) There(address string) (bool, error) {
	_, err := os.Stat(h.Device(address))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// DriverOf is the driver that a device has; "": none.
func (h Host) DriverOf(address string) (string, error) {
	to, err := os.Readlink(h.Device(address, "driver"))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(h.Device(address)); err != nil {
			return "", err
		}
		return "", nil
	}
	return filepath.Base(to), err
}

// HasDriver reports whether the kernel has a driver of the PCI bus of this name.
func (h Host) HasDriver(name string) bool {
	_, err := os.Lstat(filepath.Join(h.Dir, "bus/pci/drivers", name))
	return err == nil
}

// Group is the number of a device's IOMMU group, and the addresses of all that are in it, bridges included. The
// number is -1 without an IOMMU.
func (h Host) Group(address string) (int, []string, error) {
	to, err := os.Readlink(h.Device(address, "iommu_group"))
	if errors.Is(err, os.ErrNotExist) {
		return -1, nil, nil
	}
	if err != nil {
		return -1, nil, err
	}
	n, err := strconv.Atoi(filepath.Base(to))
	if err != nil || n < 0 {
		return -1, nil, fmt.Errorf("%s is in the IOMMU group %q", address, filepath.Base(to))
	}
	list, err := os.ReadDir(h.Device(address, "iommu_group", "devices"))
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return n, names, err
}

// Override is the driver that a device is reserved for; "": any.
func (h Host) Override(address string) (string, error) {
	s, err := Text(h.Device(address, "driver_override"))
	if s == "(null)" {
		s = ""
	}
	return s, err
}

// Change writes as the kernel wants it: in one go, to what is there.
func (h Host) Change(path, value string) error {
	if h.Write != nil {
		return h.Write(path, value)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(err, f.Close())
}

// Lock keeps others who use this package from a device.
func (h Host) Lock(address string) (unlock func(), err error) {
	f, err := os.Open(h.Device(address, "driver_override"))
	if err != nil {
		return nil, fmt.Errorf("there is no device %s: %w", address, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// Up is an interface of a device that is up; "": none is.
func (h Host) Up(address string) (string, error) {
	list, err := filepath.Glob(h.Device(address, "net", "*", "flags"))
	if err != nil {
		return "", err
	}
	for _, path := range list {
		s, err := Text(path)
		if err != nil {
			return "", err
		}
		if flags, err := strconv.ParseUint(s, 0, 32); err != nil || flags&unix.IFF_UP != 0 {
			return filepath.Base(filepath.Dir(path)), nil //nolint:nilerr // flags that are none are no sign that it is free
		}
	}
	return "", nil
}

// Text is a file without the space around it.
func Text(path string) (string, error) {
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// Number is the number in a file, of zero or more.
func Number(path string) (int, error) {
	s, err := Text(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(s)
	if err == nil && n < 0 {
		err = fmt.Errorf("%s is %d", path, n)
	}
	return n, err
}
