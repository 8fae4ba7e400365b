package host

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// Read is what the host has for virtual machines, with every device that is no bridge.
func (s Source) Read() muster.VMHost {
	p, u := s.processor(), s.iommu()
	return muster.VMHost{
		Virtualization: p.virtualization(), Guest: p.has("hypervisor"), KVM: s.kvm(p),
		IOMMU: u.on, FirmwareIOMMU: u.firmware, Remapping: u.remapping, FirmwareRemapping: u.firmwareRemapping,
		MemoryNodes: s.memoryNodes(), Devices: s.devices(),
	}
}

// Facts are what of Read is kept on record: without virtual functions, which are counted at
// their cards, and without what nobody would give to a virtual machine.
func (s Source) Facts() *muster.VMHost {
	h := s.Read()
	inWay := map[int]bool{}
	for _, d := range h.Devices {
		if d.Group != nil && d.Kind != muster.PCIOther && d.PhysicalFunction == "" {
			inWay[*d.Group] = true
		}
	}
	h.Devices = slices.DeleteFunc(h.Devices, func(d muster.PCIDevice) bool {
		return d.PhysicalFunction != "" || d.Kind == muster.PCIOther && (d.Group == nil || !inWay[*d.Group])
	})
	return &h
}

// kvm reports whether the kernel offers virtual machines: there is its device and, where
// the processor is one of which the kernel shows that, the processor has what it takes.
func (s Source) kvm(p processor) bool {
	return s.exists("dev/kvm") && (p.module() == "" || p.virtualization() != "")
}
