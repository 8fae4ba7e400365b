package muster

// VMHost is what a computer has for virtual machines, as its running kernel shows it.
type VMHost struct {
	// Virtualization is what its processors have for them: vmx or svm; "" if the kernel
	// shows nothing.
	Virtualization string `json:"virtualization,omitempty"`
	// Guest reports whether the computer is a virtual machine itself.
	Guest bool `json:"guest,omitempty"`
	// KVM reports whether its kernel offers them: its device is there, and the processor has
	// what it takes.
	KVM bool `json:"kvm"`
	// IOMMU reports whether its kernel uses one, and FirmwareIOMMU whether its firmware
	// describes one.
	IOMMU         bool `json:"iommu"`
	FirmwareIOMMU bool `json:"firmware_iommu"`
	// Remapping reports whether interrupts of devices pass the IOMMU, without which a
	// passed-through device could send any. FirmwareRemapping: the firmware offers it.
	Remapping         bool `json:"interrupt_remapping"`
	FirmwareRemapping bool `json:"firmware_interrupt_remapping"`
	// MemoryNodes are in the order of their IDs.
	MemoryNodes []VMMemoryNode `json:"memory_nodes,omitempty"`
	// Devices are network cards, disk controllers and accelerators of the PCI bus, and what
	// shares an IOMMU group with one of them, by address.
	Devices []PCIDevice `json:"devices,omitempty"`
}

// VMMemoryNode is a memory node of a computer that may carry virtual machines.
type VMMemoryNode struct {
	ID     int   `json:"id"`
	Memory int64 `json:"memory_bytes"` // bytes that the kernel has of it
	// Distances to all memory nodes, in their order; 10 is the distance to itself.
	Distances []int `json:"distances,omitempty"`
	// Pages are the huge pages of each size that the kernel knows, the smallest first.
	Pages []PagePool `json:"pages,omitempty"`
}

// PagePool is the huge pages of one size of one memory node.
type PagePool struct {
	Size  int64 `json:"size_bytes"` // bytes of each
	Total int64 `json:"total"`
	Free  int64 `json:"free"`
}

// Kinds of PCI devices.
const (
	PCINetwork     = "network"
	PCIDisk        = "disk"
	PCIAccelerator = "accelerator"
	PCIOther       = "other"
)

// PCIDevice is a device that a virtual machine could be given, or that stands in the way.
type PCIDevice struct {
	Address string `json:"address"` // 0000:41:00.0
	Kind    string `json:"kind"`    // network, disk, accelerator, other
	Name    string `json:"name,omitempty"`
	Driver  string `json:"driver,omitempty"`
	// MemoryNode is nil where it is near to all, or nobody says.
	MemoryNode *int `json:"memory_node,omitempty"`
	// Group is its IOMMU group: what is in one group is given to one virtual machine, or to
	// none. Nil without an IOMMU.
	Group *int `json:"iommu_group,omitempty"`
	// Functions are the virtual functions of one that can have any.
	Functions *VirtualFunctions `json:"virtual_functions,omitempty"`
	// PhysicalFunction is the address of the device that this one is a virtual function of.
	PhysicalFunction string `json:"physical_function,omitempty"`
	// Given: it is for the virtual machine of this machine, whole, though the machine is a slice of its host.
	Given bool `json:"given,omitempty"`
}

// Given are the devices of a slice's host that its virtual machine has whole.
func (h *VMHost) Given() []PCIDevice {
	if h == nil {
		return nil
	}
	var list []PCIDevice
	for _, d := range h.Devices {
		if d.Given {
			list = append(list, d)
		}
	}
	return list
}

// VirtualFunctions are parts of a card that act as cards.
type VirtualFunctions struct {
	Total   int `json:"total"`   // that the card could have
	Enabled int `json:"enabled"` // that it has now
	// Alone counts those of them that have an IOMMU group of their own.
	Alone int `json:"alone"`
}
