package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/pci"
)

// Site is what decides, beside a device itself, whether it can be given away.
type Site struct {
	// VM is what the host has for virtual machines.
	VM muster.VMHost
	// Card is the PCI address of the card whose virtual functions are given away; "": none are.
	Card string
	// Held are those that were taken before.
	Held []Held
}

// Problem is why a device cannot be given to virtual machines.
type Problem struct {
	Address string // "": of the host
	Text    string
	Cure    string
}

const doctor = "'muster doctor --vm' says how to set it"

// Check finds the devices of a site, and everything that keeps them from being given to virtual machines. It changes
// nothing.
func (h Host) Check(ctx context.Context, addresses []string, s Site) ([]Device, []Problem) {
	if len(addresses) == 0 {
		return nil, nil
	}
	c := &check{Host: h, site: s, all: addresses}
	switch {
	case !s.VM.IOMMU:
		c.bad("", "the host uses no IOMMU, behind which alone devices are given away", "%s", doctor)
	case !s.VM.Remapping:
		c.bad("", "interrupts of devices do not pass the IOMMU, so a device that is given away could send any", "%s", doctor)
	}
	if !h.HasDriver(pci.VFIO) {
		c.bad("", "the host's kernel has no driver "+pci.VFIO, "modprobe %s, and name it in /etc/modules-load.d", pci.VFIO)
	}
	var list []Device
	for i, a := range addresses {
		if slices.Contains(addresses[:i], a) {
			c.bad(a, "it is given twice", "leave one of them out")
			continue
		}
		if d, err := c.one(ctx, a); err != nil {
			c.bad(a, err.Error(), "%s", doctor)
		} else if d != nil {
			list = append(list, *d)
		}
	}
	if len(c.found) > 0 {
		return nil, c.found
	}
	return list, nil
}

type check struct {
	Host
	site  Site
	all   []string
	found []Problem
}

func (c *check) bad(address, text, cure string, args ...any) {
	c.found = append(c.found, Problem{address, text, fmt.Sprintf(cure, args...)})
}

// one checks a device. The error is that it could not be read.
func (c *check) one(ctx context.Context, address string) (*Device, error) {
	if there, err := c.There(address); err != nil || !there {
		c.bad(address, "there is no such device", "'lspci -D' lists them; write an address as it does: 0000:c1:00.0")
		return nil, err
	}
	class, err := c.class(address)
	if err != nil {
		return nil, err
	}
	d := &Device{Address: address, NVMe: class == classNVMe}
	if d.ID, err = c.id(address); err != nil {
		return nil, err
	}
	if strings.HasPrefix(class, classBridge) {
		c.bad(address, "it is a bridge, which is the host's", "name the devices behind it")
		return nil, nil
	}
	if strings.HasPrefix(class, classStorage) && !d.NVMe {
		c.bad(address, "it is a disk controller that is no NVMe: what tenants write to its disks could not be erased with a proof", "leave it to the host")
	}
	if address == c.site.Card {
		c.bad(address, "it is the card of --vm-card", "leave out one of them")
	} else if _, err := os.Lstat(c.Device(address, "physfn")); err == nil {
		c.bad(address, "it is a virtual function", "give virtual functions with --vm-card")
	}
	if v, err := pci.Text(c.Device(address, "boot_vga")); err == nil && v == "1" {
		c.bad(address, "it is the graphics card that the host was started with", "have firmware setup choose another one")
	}
	if c.Resets(address) != nil {
		c.bad(address, "it cannot be reset, so nobody could have it after another", "leave it to the host")
	}
	if err := c.group(d); err != nil {
		return nil, err
	}
	return d, c.free(ctx, d)
}

// group looks who is in the IOMMU group of a device.
func (c *check) group(d *Device) error {
	if !c.site.VM.IOMMU {
		return nil // said
	}
	n, members, err := c.Group(d.Address)
	if err != nil {
		return err
	}
	if n < 0 {
		c.bad(d.Address, "it is in no IOMMU group", "%s", doctor)
		return nil
	}
	d.Group = n
	var missing []string
	for _, m := range members {
		bridge, err := c.bridge(m)
		if err != nil {
			return err
		}
		if !bridge && !slices.Contains(c.all, m) {
			missing = append(missing, m)
		}
	}
	if len(missing) > 0 {
		c.bad(d.Address, fmt.Sprintf("vf-group: its IOMMU group %d has %s, too, and whoever has one device of a group reaches the others", n, strings.Join(missing, ", ")),
			"name all of the group; or plug the card into a slot of another root port, or enable ACS in firmware setup")
	}
	return nil
}

// free looks whether anybody has a device now.
func (c *check) free(ctx context.Context, d *Device) error {
	var used *InUseError
	err := c.Host.free(ctx, d, heldOf(c.site.Held, d.Address), nil)
	var other *notError
	switch {
	case errors.As(err, &used):
		c.bad(d.Address, used.By, "%s", used.Cure)
	case errors.As(err, &other):
		c.bad(d.Address, other.text, "%s", other.cure)
	default:
		return err
	}
	return nil
}
