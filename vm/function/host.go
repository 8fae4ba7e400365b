package function

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster/vm/pci"
	"golang.org/x/sys/unix"
)

// Driver is that of the kernel by which QEMU has a device.
const Driver = pci.VFIO

// Host is where the cards of a host are.
type Host struct {
	pci.Host
	// Open opens the settings of a card's functions, by the name of its interface; nil: the kernel's.
	Open func(name string) (Settings, error)
}

// This is the host that this program runs on.
func This() Host { return Host{Host: pci.This()} }

// Card is a network card with virtual functions.
type Card struct {
	Name    string // of its interface
	Address string // of its physical function on the PCI bus
	host    Host
}

// Card finds a card by the name of its interface.
func (h Host) Card(name string) (*Card, error) {
	if name == "" || strings.ContainsAny(name, "/ ") || name == "." || name == ".." {
		return nil, fmt.Errorf("%q is not the name of an interface", name)
	}
	to, err := os.Readlink(filepath.Join(h.Dir, "class/net", name, "device"))
	if errors.Is(err, os.ErrNotExist) {
		if _, also := os.Lstat(filepath.Join(h.Dir, "class/net", name)); also == nil {
			return nil, fmt.Errorf("%s is no card: nothing of a bus is behind it", name)
		}
		return nil, fmt.Errorf("there is no interface %s", name)
	}
	if err != nil {
		return nil, err
	}
	c := &Card{Name: name, Address: filepath.Base(to), host: h}
	if _, err := os.Lstat(c.at("sriov_totalvfs")); err != nil {
		return nil, fmt.Errorf("%s has no virtual functions: its firmware or its driver offers none", name)
	}
	return c, nil
}

func (c *Card) at(names ...string) string { return c.host.Device(c.Address, names...) }

// Total is how many functions the card could have, and Enabled how many it has.
func (c *Card) Total() (int, error) { return pci.Number(c.at("sriov_totalvfs")) }

// Enabled is how many functions the card has.
func (c *Card) Enabled() (int, error) { return pci.Number(c.at("sriov_numvfs")) }

// Enable makes functions of a card that has none: Linux changes their number from 0 only. No driver of the host takes
// them.
func (c *Card) Enable(n int) error {
	now, err := c.Enabled()
	if err != nil || now >= n {
		return err
	}
	total, err := c.Total()
	switch {
	case err != nil:
		return err
	case n > total:
		return fmt.Errorf("%s can have %d virtual functions, and not %d", c.Name, total, n)
	case now > 0:
		return fmt.Errorf("%s has %d virtual functions, and another number is set only after 0", c.Name, now)
	}
	auto := c.at("sriov_drivers_autoprobe")
	before, err := pci.Text(auto)
	if err == nil {
		err = c.host.Change(auto, "0")
	}
	if err != nil {
		return fmt.Errorf("keep the host's drivers from the functions of %s: %w", c.Name, err)
	}
	err = c.host.Change(c.at("sriov_numvfs"), strconv.Itoa(n))
	err = errors.Join(err, c.host.Change(auto, before))
	if err != nil {
		return fmt.Errorf("make %d virtual functions of %s: %w", n, c.Name, err)
	}
	if now, err = c.Enabled(); err == nil && now != n {
		err = fmt.Errorf("%s has %d virtual functions after %d were asked", c.Name, now, n)
	}
	return err
}

// Function is a virtual function of a card.
type Function struct {
	Card    string `json:"card"`    // name of the card's interface
	Index   int    `json:"index"`   // of the card's functions, from 0
	Address string `json:"address"` // on the PCI bus
	Group   int    `json:"iommu_group"`
}

// Functions are those that the card has, in order, as far as each has an IOMMU group of its own.
func (c *Card) Functions() ([]Function, error) {
	n, err := c.Enabled()
	if err != nil {
		return nil, err
	}
	var list []Function
	for i := range n {
		to, err := os.Readlink(c.at("virtfn" + strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		f := Function{Card: c.Name, Index: i, Address: filepath.Base(to)}
		var company []string
		f.Group, company, err = c.host.Group(f.Address)
		if err != nil {
			return nil, err
		}
		if slices.Equal(company, []string{f.Address}) { // none without an IOMMU
			list = append(list, f)
		}
	}
	return list, nil
}

// Up reports whether the card is up: its functions have no link otherwise. MTU is what it carries.
func (c *Card) Up() (up bool, mtu int, err error) {
	s, err := pci.Text(filepath.Join(c.host.Dir, "class/net", c.Name, "flags"))
	if err != nil {
		return false, 0, err
	}
	flags, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return false, 0, err
	}
	mtu, err = pci.Number(filepath.Join(c.host.Dir, "class/net", c.Name, "mtu"))
	return flags&unix.IFF_UP != 0, mtu, err
}
