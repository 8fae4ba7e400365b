package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-hpc/muster/vm/pci"
)

// Held is a device that was taken from the host, or was about to be.
type Held struct {
	Address string `json:"address"`
	ID      string `json:"id"` // what was at that address
	// Driver is the one that it had before; "": none.
	Driver string `json:"driver,omitempty"`
	// Disk is what an NVMe was before anybody had it; nil: it is none.
	Disk *Disk `json:"disk,omitempty"`
	// Clean: nobody has it, and nothing of a tenant's is left on it.
	Clean bool `json:"clean,omitempty"`
}

func heldOf(list []Held, address string) *Held {
	i := slices.IndexFunc(list, func(d Held) bool { return d.Address == address })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// notError is why a device cannot be taken, and what to do.
type notError struct{ text, cure string }

func (e *notError) Error() string { return e.text }

// Hint is what to do about an error of this package; "": nothing is known.
func Hint(err error) string {
	var used *InUseError
	var not *notError
	switch {
	case errors.As(err, &used):
		return used.Cure
	case errors.As(err, &not):
		return not.cure
	}
	return ""
}

// free reports, as an error, why a device cannot be taken. held is the note of it, nil: there is none. Into fill, if that
// is not nil, it writes the note that there is to be.
func (h Host) free(ctx context.Context, d *Device, held *Held, fill *Held) error {
	driver, err := h.DriverOf(d.Address)
	if err != nil {
		return err
	}
	override, err := h.Override(d.Address)
	if err != nil {
		return err
	}
	now := Held{Address: d.Address, ID: d.ID, Driver: driver}
	switch {
	case held == nil:
	case held.Clean && held.ID != d.ID: // another device is there since
		held = nil
	default:
		if err := h.same(*held); err != nil {
			return err
		}
	}
	switch {
	case driver == pci.VFIO || driver == "" && override != "":
		if held == nil || held.Clean {
			return &InUseError{d.Address, fmt.Sprintf("its driver is %q and driver_override %q", driver, override),
				"end whatever has it, and take it out of that program's or the kernel's list of devices for " + pci.VFIO}
		}
		now = *held
	case driver == "" && held != nil: // it stands ready
		now = *held
	case driver == "" && d.NVMe:
		return &notError{"it has no driver, so nobody knows what is on it", "modprobe nvme; echo " + d.Address + " > /sys/bus/pci/drivers/nvme/bind"}
	case driver == "":
	default: // the host has it: it is taken for the first time, or the host was started since
		if err := h.use(d.Address); err != nil {
			return err
		}
		if d.NVMe {
			if now.Disk, err = h.known(ctx, d.Address, held); err != nil {
				return err
			}
		}
	}
	if fill != nil {
		now.Clean = false
		*fill = now
	}
	return nil
}

// known reads what an NVMe is that the host has. One that no tenant had must be empty: nobody reads there what the site has
// left, and nothing is erased that Muster has not given away.
func (h Host) known(ctx context.Context, address string, held *Held) (*Disk, error) {
	if driver, err := h.DriverOf(address); err != nil || driver != nvmeDriver {
		return nil, errors.Join(err, &notError{fmt.Sprintf("its driver is %q, not %s, so nobody knows what is on it", driver, nvmeDriver), "give it to nvme before the server starts"})
	}
	d, err := h.disk(address)
	if err != nil {
		return nil, &notError{err.Error(), "look at it with nvme-cli: nvme list -v"}
	}
	if held != nil && !held.Clean {
		if diff := d.differs(*held.Disk); diff != "" {
			return nil, &notError{"it is not the disk that a tenant had: " + diff, h.lostCure(*held)}
		}
		return &d.Disk, nil
	}
	if len(d.Namespaces) == 0 {
		return nil, &notError{"it has no namespace", "make one: nvme create-ns, nvme attach-ns"}
	}
	for _, n := range d.Namespaces {
		name := d.names[n.ID]
		if err := h.Disks.Empty(ctx, filepath.Join(h.Dev, name), n.Size); err != nil {
			return nil, &notError{fmt.Sprintf("%s is not empty, or in use: %v", name, err), "what is on it is lost when it is given away; if nobody needs it: blkdiscard --zeroout /dev/" + name}
		}
	}
	return &d.Disk, nil
}

// same reports, as an error, that another device is at an address than was noted.
func (h Host) same(d Held) error {
	there, err := h.There(d.Address)
	if err != nil {
		return err
	}
	if !there {
		return &notError{"the device " + d.Address + " is gone", h.lostCure(d)}
	}
	id, err := h.id(d.Address)
	if err == nil && id != d.ID && !d.Clean {
		err = &notError{fmt.Sprintf("%s is %s now, and was %s", d.Address, id, d.ID), h.lostCure(d)}
	}
	return err
}

func (h Host) lostCure(d Held) string {
	if d.Disk != nil {
		return "put the disk with the serial number " + d.Disk.Serial + " back where it was, so that it is erased"
	}
	return "put it back where it was, and start the host again"
}

// Take takes devices for a virtual machine: whole IOMMU groups. held is the note of what is taken already; keep is given the
// note that there is to be, before anything is changed. If it fails, what is noted is to be given back.
func (h Host) Take(ctx context.Context, devices []Device, held []Held, keep func([]Held) error) error {
	devices = slices.Clone(devices)
	slices.SortFunc(devices, func(a, b Device) int { return strings.Compare(a.Address, b.Address) })
	note := slices.Clone(held)
	for i := range devices {
		d := &devices[i]
		unlock, err := h.Lock(d.Address) // in the order of addresses, for all who take several
		if err != nil {
			return err
		}
		defer unlock()
		if err := h.complete(*d, devices); err != nil {
			return err
		}
		var now Held
		if err := h.free(ctx, d, heldOf(held, d.Address), &now); err != nil {
			return fmt.Errorf("the device %s cannot be taken: %w", d.Address, err)
		}
		note = append(slices.DeleteFunc(note, func(o Held) bool { return o.Address == d.Address }), now)
	}
	if err := keep(note); err != nil {
		return err
	}
	for _, d := range devices {
		if d.NVMe {
			if err := h.hide(d.Address); err != nil {
				return err
			}
		}
		if err := h.Unbind(d.Address); err != nil {
			return err
		}
		if err := h.Bind(d.Address, pci.VFIO); err != nil {
			return err
		}
	}
	return nil
}

// complete reports, as an error, that a device is not what it was when it was checked, or that not all of its group is taken.
func (h Host) complete(d Device, all []Device) error {
	id, err := h.id(d.Address)
	if err != nil {
		return err
	}
	if id != d.ID {
		return &notError{fmt.Sprintf("%s is %s, and was %s when the server started", d.Address, id, d.ID), "start the server again"}
	}
	n, members, err := h.Group(d.Address)
	if err != nil {
		return err
	}
	for _, m := range members {
		bridge, err := h.bridge(m)
		if err != nil {
			return err
		}
		if n != d.Group || !bridge && !slices.ContainsFunc(all, func(o Device) bool { return o.Address == m }) {
			return &notError{fmt.Sprintf("the IOMMU group of %s is another one than when the server started", d.Address), "start the server again"}
		}
	}
	return h.Resets(d.Address)
}

// hide keeps udev of the host from looking at what a tenant wrote to a disk: what seems to be a part of a RAID or of LVM
// would be put together when the disk is erased.
func (h Host) hide(address string) error {
	path := h.rule(address)
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(h.Rules, 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("# Written by Muster, which gives this disk to virtual machines.\n"+
		`ACTION!="remove", SUBSYSTEM=="block", KERNELS=="`+address+`", ENV{UDEV_DISABLE_PERSISTENT_STORAGE_RULES_FLAG}="1", ENV{SYSTEMD_READY}="0", ENV{UDISKS_IGNORE}="1", OPTIONS+="nowatch"`+"\n"), 0o644)
}

func (h Host) show(address string) error {
	path := h.rule(address)
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// rule is where udev finds what it is to do with a disk; "": there is no udev.
func (h Host) rule(address string) string {
	if h.Rules == "" {
		return ""
	}
	if _, err := os.Stat(filepath.Dir(h.Rules)); err != nil {
		return ""
	}
	return filepath.Join(h.Rules, "10-muster-"+address+".rules")
}
