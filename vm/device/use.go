package device

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-hpc/muster/vm/pci"
)

// InUseError says that a device has another user, and how it comes to have none.
type InUseError struct {
	Address  string
	By, Cure string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the device %s is in use: %s", e.Address, e.By)
}

// use reports, as an InUseError, what the host does with a device that one of its drivers has.
func (h Host) use(address string) error {
	for _, look := range []func(string) (by, cure string, err error){h.interfaces, h.functions, h.blocks} {
		by, cure, err := look(address)
		if err != nil {
			return err
		}
		if by != "" {
			return &InUseError{address, by, cure}
		}
	}
	return nil
}

func (h Host) interfaces(address string) (by, cure string, err error) {
	if name, err := h.Up(address); err != nil || name != "" {
		return "its interface " + name + " is up", "ip link set " + name + " down, also after the next boot", err
	}
	list, err := os.ReadDir(h.Device(address, "net"))
	if errors.Is(err, os.ErrNotExist) {
		return "", "", nil
	}
	for _, e := range list {
		if to, err := os.Readlink(h.Device(address, "net", e.Name(), "master")); err == nil {
			return fmt.Sprintf("its interface %s is part of %s", e.Name(), filepath.Base(to)), "ip link set " + e.Name() + " nomaster", nil
		}
		if n, err := h.Addresses(e.Name()); err != nil || n > 0 {
			return fmt.Sprintf("its interface %s has addresses", e.Name()), "ip address flush dev " + e.Name(), err
		}
	}
	return "", "", err
}

func (h Host) functions(address string) (by, cure string, err error) {
	n, err := pci.Number(h.Device(address, "sriov_numvfs"))
	if errors.Is(err, os.ErrNotExist) || err == nil && n == 0 {
		return "", "", nil
	}
	return fmt.Sprintf("it has %d virtual functions", n), "echo 0 > /sys/bus/pci/devices/" + address + "/sriov_numvfs", err
}

// blocks looks at the disks of a device: what is mounted of them, swapped to, or part of something else.
func (h Host) blocks(address string) (by, cure string, err error) {
	disks, err := h.namespaceNames(address)
	if err != nil || len(disks) == 0 {
		return "", "", err
	}
	mounts, err := os.ReadFile(filepath.Join(h.Proc, "self/mountinfo"))
	if err != nil {
		return "", "", err
	}
	swaps, err := os.ReadFile(filepath.Join(h.Proc, "swaps"))
	if err != nil {
		return "", "", err
	}
	for _, disk := range disks {
		parts, err := filepath.Glob(filepath.Join(h.Dir, "class/block", disk, disk+"p*"))
		if err != nil {
			return "", "", err
		}
		names := []string{disk}
		for _, p := range parts {
			names = append(names, filepath.Base(p))
		}
		for _, name := range names {
			dev, err := pci.Text(h.blockFile(name, "dev"))
			if err != nil {
				return "", "", err
			}
			if at := mountedAt(mounts, dev, "/dev/"+name); at != "" {
				return fmt.Sprintf("%s is mounted at %s", name, at), "umount " + at + ", also after the next boot; the disk of the host's system cannot be given away", nil
			}
			if swapped(swaps, "/dev/"+name) {
				return name + " is swap", "swapoff /dev/" + name + ", also after the next boot", nil
			}
			holders, err := os.ReadDir(h.blockFile(name, "holders"))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return "", "", err
			}
			if len(holders) > 0 {
				return fmt.Sprintf("%s is part of %s (RAID, LVM, encryption or the like)", name, holders[0].Name()), "take it out of that: lsblk /dev/" + disk, nil
			}
		}
	}
	return "", "", nil
}

func (h Host) blockFile(name string, file string) string {
	return filepath.Join(h.Dir, "class/block", name, file)
}

// mountedAt is where a mountinfo has a block device mounted, by its number or, for file systems with a number of their
// own, by its name; "" if nowhere.
func mountedAt(mountinfo []byte, dev, path string) string {
	for lines := bufio.NewScanner(bytes.NewReader(mountinfo)); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		f, rest := strings.Fields(before), strings.Fields(after)
		if len(f) > 4 && (f[2] == dev || len(rest) > 1 && rest[1] == path) {
			return f[4]
		}
	}
	return ""
}

// swapped reports whether /proc/swaps has a block device.
func swapped(swaps []byte, path string) bool {
	for lines := bufio.NewScanner(bytes.NewReader(swaps)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 1 && f[1] == "partition" && f[0] == path {
			return true
		}
	}
	return false
}
