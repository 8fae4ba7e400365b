package local

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/device"
	vmhost "github.com/muster-hpc/muster/vm/host"
)

// VMDevice is a PCI device that the site gives to the virtual machine of one of its machines, whole.
type VMDevice struct {
	Address string
	// Machine is whose virtual machine; "": one near to the device.
	Machine muster.MachineID
}

// vmDeviceForm is how a device is written.
const vmDeviceForm = "ADDRESS[,machine=NAME]"

// mostDevices bounds the devices of a virtual machine.
const mostDevices = 16

// ParseVMDevices reads devices that are written as ADDRESS[,machine=NAME]: everything that is wrong is said at once.
func ParseVMDevices(texts []string) ([]VMDevice, error) {
	address := regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	var list []VMDevice
	var problems []muster.Problem
	for _, text := range texts {
		bad := func(format string, args ...any) {
			problems = append(problems, muster.Problem{Field: "--vm-device " + text, Reason: muster.ReasonBadValue, Message: fmt.Sprintf(format, args...),
				Hint: "write " + vmDeviceForm + ", for instance 0000:c1:00.0,machine=local-01"})
		}
		parts := strings.Split(text, ",")
		d := VMDevice{Address: strings.ToLower(parts[0])}
		if !address.MatchString(d.Address) {
			bad("%q is not the address of a PCI device, as lspci -D writes it", parts[0])
		}
		for _, p := range parts[1:] {
			switch key, value, _ := strings.Cut(p, "="); {
			case key != "machine":
				bad("there is no %q", key)
			case d.Machine != "":
				bad("machine is given twice")
			default:
				d.Machine = muster.MachineID(value)
				if _, ok := machineIndex(d.Machine); !ok {
					bad("%q is not the name of a local machine", value)
				}
			}
		}
		list = append(list, d)
	}
	if len(problems) > 0 {
		return nil, muster.Errorf(muster.EInvalid, "--vm-device is not possible so").Because(muster.ReasonBadValue).Listing(problems)
	}
	return list, nil
}

// openVMDevices finds the devices that the site gives to virtual machines, and whose each is.
func (p *Provider) openVMDevices(ctx context.Context, source vmhost.Source) error {
	if len(p.cfg.VMDevices) == 0 {
		return nil
	}
	notes, err := p.loadDeviceNotes()
	if err != nil {
		return err
	}
	site := device.Site{VM: source.Read()}
	if p.card != nil {
		site.Card = p.card.Address
	}
	for _, n := range notes {
		site.Held = append(site.Held, n.Devices...)
	}
	var addresses []string
	for _, d := range p.cfg.VMDevices {
		addresses = append(addresses, d.Address)
	}
	list, found := p.devices.Check(ctx, addresses, site)
	var problems []muster.Problem
	for _, f := range found {
		problems = append(problems, muster.Problem{Field: strings.TrimSpace("--vm-device " + f.Address), Reason: muster.ReasonBadMachines, Message: f.Text, Hint: f.Cure})
	}
	for _, d := range p.cfg.VMDevices {
		if m := p.machines[d.Machine]; d.Machine != "" && m == nil {
			problems = append(problems, muster.Problem{Field: "--vm-device " + d.Address, Reason: muster.ReasonBadMachines, Message: fmt.Sprintf("there is no machine %s", d.Machine), Hint: "name one of --local"})
		}
	}
	if len(problems) == 0 {
		problems = p.shareDevices(list, site.VM.Devices, notes)
	}
	if len(problems) > 0 {
		return muster.Errorf(muster.EConflict, "devices cannot be given to virtual machines").Because(muster.ReasonBadMachines).Listing(problems)
	}
	for _, m := range p.machines {
		m.facts.VMHost = withDevices(m.facts.VMHost, site.VM.Devices, m.devices)
	}
	return nil
}

// shareDevices gives each group of devices to a machine: the one that is named, else the one that has it already, else of
// those at the memory node of the first of its devices the one with the fewest.
func (p *Provider) shareDevices(list []device.Device, all []muster.PCIDevice, notes map[muster.MachineID]*deviceNote) (problems []muster.Problem) {
	done := map[int]bool{}
	for _, first := range list {
		if done[first.Group] {
			continue
		}
		done[first.Group] = true
		var group []device.Device
		named := map[muster.MachineID]bool{}
		var to muster.MachineID
		for _, d := range list {
			if d.Group != first.Group {
				continue
			}
			group = append(group, d)
			for _, c := range p.cfg.VMDevices {
				if c.Address == d.Address && c.Machine != "" {
					to, named[c.Machine] = c.Machine, true
				}
			}
		}
		if len(named) > 1 {
			problems = append(problems, muster.Problem{Field: "--vm-device " + first.Address, Reason: muster.ReasonBadMachines,
				Message: fmt.Sprintf("vf-group: the devices of IOMMU group %d are for several machines", first.Group), Hint: "name one machine for all of the group"})
			continue
		}
		for id, n := range notes {
			if to == "" && p.machines[id] != nil && slices.ContainsFunc(n.Devices, func(h device.Held) bool { return h.Address == first.Address }) {
				to = id
			}
		}
		if to == "" {
			to = p.nearest(first, all)
		}
		m := p.machines[to]
		m.devices = append(m.devices, group...)
		if len(m.devices) > mostDevices {
			problems = append(problems, muster.Problem{Field: "--vm-device " + first.Address, Reason: muster.ReasonBadMachines,
				Message: fmt.Sprintf("%s would have %d devices, and may have %d", to, len(m.devices), mostDevices), Hint: "name another machine for it"})
		}
	}
	return problems
}

// nearest is the machine with the fewest devices of those that have cores at the memory node of a device, or of all.
func (p *Provider) nearest(d device.Device, all []muster.PCIDevice) muster.MachineID {
	var node *int
	if i := slices.IndexFunc(all, func(o muster.PCIDevice) bool { return o.Address == d.Address }); i >= 0 {
		node = all[i].MemoryNode
	}
	near := func(m *machine) bool {
		return node == nil || slices.ContainsFunc(p.host.cpus, func(c cpu) bool { return c.node == *node && slices.Contains(m.facts.CPUs, c.id) })
	}
	machines := p.all(nil)
	best := slices.MinFunc(machines, func(a, b *machine) int {
		if near(a) != near(b) {
			if near(a) {
				return -1
			}
			return 1
		}
		if len(a.devices) != len(b.devices) {
			return len(a.devices) - len(b.devices)
		}
		return a.index - b.index
	})
	return best.id
}

// withDevices is a host as a slice of it is to know it whose virtual machine has some of its devices.
func withDevices(h *muster.VMHost, all []muster.PCIDevice, given []device.Device) *muster.VMHost {
	if h == nil || len(given) == 0 {
		return h
	}
	own := *h
	own.Devices = slices.Clone(h.Devices)
	for _, g := range given {
		is := func(d muster.PCIDevice) bool { return d.Address == g.Address }
		i := slices.IndexFunc(own.Devices, is)
		if j := slices.IndexFunc(all, is); i < 0 && j >= 0 {
			own.Devices, i = append(own.Devices, all[j]), len(own.Devices)
		}
		if i >= 0 {
			own.Devices[i].Given = true
		}
	}
	return &own
}
