package qemu

import "github.com/muster-hpc/muster"

// Machine is the hardware of one virtual machine.
type Machine struct {
	Name string `json:"name"` // of the process, for people
	UUID string `json:"uuid"` // SMBIOS
	// Type is the machine type with its version, such as pc-q35-7.2: a saved state is loaded
	// by the same type only, also by a later QEMU. See Type.
	Type string `json:"type"`
	// KVM: the host's processor executes; otherwise QEMU translates.
	KVM bool `json:"kvm"`
	// CPU is the model of its processors, as QEMU writes it; "": that of vm/accel.
	CPU    string `json:"cpu,omitempty"`
	Cores  int    `json:"cores"` // vCPUs
	Memory int64  `json:"memory_bytes"`
	// Plan lays processors and memory out, as many as Cores and Memory say; nil: one socket, and
	// memory anywhere. Its network card and devices are not looked at.
	Plan *muster.VMPlan `json:"plan,omitempty"`

	// Kernel and Initramfs are places in its own root; see jail.Order.
	Kernel    string   `json:"kernel"`
	Initramfs string   `json:"initramfs"`
	Append    []string `json:"append,omitempty"` // words of the kernel's command line

	Disks []Disk `json:"disks,omitempty"`
	NICs  []NIC  `json:"nics,omitempty"`
	// Devices are passed through whole.
	Devices []Device `json:"devices,omitempty"`

	// Incoming: it begins with a state that it is given, and stands still until it is told to go on.
	Incoming bool `json:"incoming,omitempty"`

	// Monitor, Console and Channel are inherited sockets: QMP, the first serial port, and
	// the second, by which the supervisor speaks with the machine's first program.
	Monitor int `json:"monitor"`
	Console int `json:"console"`
	Channel int `json:"channel"`
}

// Disk is a disk in an inherited descriptor.
type Disk struct {
	// Serial is how the guest knows it: of letters, digits and dashes, 20 at most.
	Serial   string `json:"serial"`
	FD       int    `json:"fd"`
	ReadOnly bool   `json:"read_only,omitempty"` // the descriptor is, too
}

// NIC is a network card on an inherited tap.
type NIC struct {
	ID  string `json:"id"` // name in QMP
	MAC string `json:"mac"`
	FD  int    `json:"fd"`
	// Queues are pairs of queues, each with a descriptor of its own, from FD on. 0 is one.
	Queues int `json:"queues,omitempty"`
	// Function is the PCI address of the virtual function that is the card, in the place of a tap: it has no
	// descriptor, and MAC is what its physical function has set. MemoryNode of the machine that it is near to; nil: none.
	Function   string `json:"function,omitempty"`
	MemoryNode *int   `json:"memory_node,omitempty"`
}

// Device is a device of the host that is the machine's.
type Device struct {
	Address string `json:"address"`
	// MemoryNode of the machine that it is near to; nil: none.
	MemoryNode *int `json:"memory_node,omitempty"`
}

// FDs is how many descriptors the card has.
func (n *NIC) FDs() int {
	if n.Function != "" {
		return 0
	}
	return max(1, n.Queues)
}

// Functions is where QEMU looks for PCI devices, in the machine's own root.
const Functions = "/sys/bus/pci/devices"
