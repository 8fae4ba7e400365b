package factsdiff

import (
	"slices"

	"github.com/muster-hpc/muster"
)

const (
	mostMemory = int64(1) << 53
	mostPages  = int64(1) << 40
)

// boundedVMHost is what a machine says it has for virtual machines, as far as it can be
// believed.
func boundedVMHost(was *muster.VMHost) *muster.VMHost {
	if was == nil {
		return nil
	}
	h := *was
	if h.Virtualization != "vmx" && h.Virtualization != "svm" {
		h.Virtualization = ""
	}
	h.MemoryNodes, h.Devices = cut(h.MemoryNodes), cut(h.Devices)
	for i := range h.MemoryNodes {
		n := &h.MemoryNodes[i]
		n.ID, n.Memory, n.Distances, n.Pages = min(max(n.ID, 0), mostParts), min(max(n.Memory, 0), mostMemory), cut(n.Distances), cut(n.Pages)
		for j := range n.Distances {
			n.Distances[j] = min(max(n.Distances[j], 0), 255)
		}
		for j := range n.Pages {
			p := &n.Pages[j]
			p.Size, p.Total = min(max(p.Size, 0), mostMemory), min(max(p.Total, 0), mostPages)
			p.Free = min(max(p.Free, 0), p.Total)
		}
	}
	for i := range h.Devices {
		d := &h.Devices[i]
		d.Address, d.Name, d.Driver, d.PhysicalFunction = text(d.Address), text(d.Name), text(d.Driver), text(d.PhysicalFunction)
		if !slices.Contains([]string{muster.PCINetwork, muster.PCIDisk, muster.PCIAccelerator}, d.Kind) {
			d.Kind = muster.PCIOther
		}
		for _, n := range []**int{&d.MemoryNode, &d.Group} {
			if *n != nil {
				*n = new(min(max(**n, 0), 1<<20))
			}
		}
		if v := d.Functions; v != nil {
			total := min(max(v.Total, 0), 1<<16)
			enabled := min(max(v.Enabled, 0), total)
			d.Functions = &muster.VirtualFunctions{Total: total, Enabled: enabled, Alone: min(max(v.Alone, 0), enabled)}
		}
	}
	return &h
}

// lastingVMHost leaves out how much is free: it differs from moment to moment.
func lastingVMHost(was *muster.VMHost) *muster.VMHost {
	if was == nil {
		return nil
	}
	h := *was
	h.MemoryNodes, h.Devices = some(slices.Clone(h.MemoryNodes)), slices.Clone(some(h.Devices))
	for i := range h.MemoryNodes {
		n := &h.MemoryNodes[i]
		n.Memory, n.Distances, n.Pages = 0, some(n.Distances), some(slices.Clone(n.Pages))
		for j := range n.Pages {
			n.Pages[j].Free = 0
		}
	}
	for i := range h.Devices {
		h.Devices[i].Name = "" // a boot gives it
	}
	return &h
}
