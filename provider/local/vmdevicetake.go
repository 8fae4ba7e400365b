package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/wipe"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/vm/device"
	"github.com/muster-hpc/muster/vm/jail"
	"github.com/muster-hpc/muster/vm/qemu"
)

// takeDevices takes the devices of a machine for a boot, noted before.
func (p *Provider) takeDevices(ctx context.Context, m *machine, b *provider.Boot) error {
	if len(m.devices) == 0 {
		return nil
	}
	n, err := p.loadDeviceNote(m.id)
	if err != nil {
		return err
	}
	if n.dirty() && n.Cluster != b.Cluster {
		return muster.Errorf(muster.EConflict, "the devices of machine %s are not clean", m.id).Because(muster.ReasonNotClean).WithHint("clean the machine first: `muster machine show %s` says what is in the way", m.id)
	}
	n.Cluster = b.Cluster
	err = p.devices.Take(ctx, m.devices, n.Devices, func(list []device.Held) error {
		n.Devices = list
		return p.saveDeviceNote(m.id, n)
	})
	if err != nil {
		return deviceError(muster.Errorf(muster.EConflict, "machine %s cannot have its devices: %v", m.id, err).Because(muster.ReasonBootFailed), err)
	}
	return nil
}

// deviceError is an error with what to do about a device.
func deviceError(e *muster.Error, err error) error {
	hint := device.Hint(err)
	if hint == "" {
		hint = "leave it out of --vm-device, or see what the kernel's log says of it"
	}
	return e.WithHint("%s", hint).Wrap(err)
}

// giveDevices takes the devices of a machine back whose QEMU has ended. Disks are erased when the machine is cleaned.
func (p *Provider) giveDevices(id muster.MachineID) error {
	n, err := p.loadDeviceNote(id)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range n.Devices {
		if d.Clean {
			continue
		}
		if err := p.devices.Give(d); err != nil {
			errs = append(errs, deviceError(muster.Errorf(muster.EUnavailable, "device %s cannot be taken back from machine %s: %v", d.Address, id, err).Because(muster.ReasonNotClean), err))
		}
	}
	return errors.Join(errs...)
}

// cleanDevices leaves nothing of a tenant's on the devices of a machine that is off, and says how that was proven. Devices
// that are not the machine's any more are given to the host.
func (p *Provider) cleanDevices(ctx context.Context, m *machine) ([]muster.CleanStep, error) {
	n, err := p.loadDeviceNote(m.id)
	if err != nil {
		return nil, err
	}
	var steps []muster.CleanStep
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Clean {
			continue
		}
		if d.Disk != nil {
			p.cfg.Log.Info("erasing a disk that a virtual machine had", "machine", m.id, "device", d.Address, "serial", d.Disk.Serial)
		}
		proof, err := p.devices.Clean(ctx, *d)
		if err != nil {
			return steps, deviceError(muster.Errorf(muster.EUnavailable, "machine %s is not clean: device %s: %v", m.id, d.Address, err).Because(muster.ReasonNotClean), err)
		}
		d.Clean = true
		if err := p.saveDeviceNote(m.id, n); err != nil {
			return steps, err
		}
		steps = append(steps, muster.CleanStep{What: "device " + d.Address, Check: proof, OK: true})
	}
	return steps, p.releaseDevices(m.id, m.devices)
}

// releaseDevices gives devices that are clean, and not among those that stay, to the drivers that they had before.
func (p *Provider) releaseDevices(id muster.MachineID, stay []device.Device) error {
	n, err := p.loadDeviceNote(id)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range slices.Clone(n.Devices) {
		if !d.Clean || slices.ContainsFunc(stay, func(s device.Device) bool { return s.Address == d.Address }) {
			continue
		}
		if err := p.devices.Release(d); err != nil {
			errs = append(errs, fmt.Errorf("give the device %s back to its driver %s: %w", d.Address, d.Driver, err))
			continue
		}
		n.Devices = slices.DeleteFunc(n.Devices, func(o device.Held) bool { return o.Address == d.Address })
		errs = append(errs, p.saveDeviceNote(id, n))
	}
	return errors.Join(errs...)
}

// recoverDevices finds the machines whose devices are not clean, also those that the configuration does not have, and gives
// devices to the host that it does not name any more.
func (p *Provider) recoverDevices() error {
	notes, err := p.loadDeviceNotes()
	if err != nil {
		return err
	}
	for id, n := range notes {
		m := p.machines[id]
		if i, ok := machineIndex(id); m == nil && ok && n.dirty() {
			p.adoptForeign(id, &record{Machine: id, Index: i})
			m = p.machines[id]
		}
		var stay []device.Device
		if m != nil {
			stay = m.devices
		}
		if err := p.releaseDevices(id, stay); err != nil {
			p.cfg.Log.Error("a device was not given back to the host", "machine", id, "error", err)
		}
	}
	return nil
}

// releaseAllDevices gives all devices that are clean to the host.
func (p *Provider) releaseAllDevices() error {
	notes, err := p.loadDeviceNotes()
	errs := []error{err}
	for id := range notes {
		errs = append(errs, p.releaseDevices(id, nil))
	}
	return errors.Join(errs...)
}

// deviceCards are the devices of a plan as QEMU has them.
func deviceCards(pl *muster.VMPlan) []qemu.Device {
	var list []qemu.Device
	for _, d := range pl.Devices {
		list = append(list, qemu.Device{Address: d.Address, MemoryNode: d.MemoryNode})
	}
	return list
}

// passed are the devices that a virtual machine has by VFIO.
func (n *vmNote) passed() []jail.Device {
	var list []jail.Device
	if n.Function != nil {
		list = append(list, jail.Device{Address: n.Function.Address, Group: n.Function.Group})
	}
	for _, d := range n.Plan.Devices {
		if d.Group != nil {
			list = append(list, jail.Device{Address: d.Address, Group: *d.Group})
		}
	}
	return list
}

// hostDisks are disks of this host that were given to virtual machines.
type hostDisks struct{}

func (hostDisks) open(path string, size int64) (*wipe.Block, error) {
	d, err := wipe.OpenWrite(path, size)
	if err != nil {
		return nil, fmt.Errorf("open %s: %s", filepath.Base(path), muster.Describe(err))
	}
	return d, nil
}

func (h hostDisks) Empty(ctx context.Context, path string, size int64) error {
	d, err := h.open(path, size)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	_, err = wipe.Prove(ctx, d, size)
	if muster.CodeOf(err) == muster.ECorrupt {
		return errors.New("there is something on it")
	}
	return err
}

func (h hostDisks) Erase(ctx context.Context, path string, size int64) (string, error) {
	d, err := h.open(path, size)
	if err != nil {
		return "", err
	}
	defer func() { _ = d.Close() }()
	e, err := wipe.Erase(ctx, d, func(int64) {})
	if err != nil {
		return "", err
	}
	return e.String(), nil
}
