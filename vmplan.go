package muster

// ProviderVM is what a request says in the place of a provider that asks for virtual machines:
// machines of any provider that can be booted so.
const ProviderVM = "vm"

// Ways of a virtual machine to its network.
const (
	VMNICVirtio   = "virtio"
	VMNICFunction = "vf"
)

// Sizes of huge pages, as requests write them.
const (
	VMPages2MiB = "2MiB"
	VMPages1GiB = "1GiB"
)

// VMOptions are how a virtual machine is to be. The zero value is a tuned one of the whole
// machine, with virtio and pages of 2 MiB.
type VMOptions struct {
	// Cores of the virtual machine; 0 is all but those that the host keeps.
	Cores int `json:"cores,omitempty"`
	// Memory in bytes; 0 is what its cores' share of it allows.
	Memory int64 `json:"memory_bytes,omitempty"`
	// HostCores are those that the host keeps for QEMU's own threads. Nil: one of a whole
	// machine with eight or more.
	HostCores *int `json:"host_cores,omitempty"`
	// Untuned: without anything that depends on how the machine is built.
	Untuned bool   `json:"untuned,omitempty"`
	NIC     string `json:"nic,omitempty"`   // virtio, vf; "" is virtio
	Pages   string `json:"pages,omitempty"` // 2MiB, 1GiB; "" is 2MiB
	// CPU is a model of QEMU's to show instead of the host's.
	CPU string `json:"cpu,omitempty"`
	// Save: it may be saved to a file and loaded elsewhere.
	Save bool `json:"save,omitempty"`
	// Devices are whole PCI devices to give it, by address.
	Devices []string `json:"devices,omitempty"`
	// Emulate: QEMU executes it in software where the host has no KVM.
	Emulate bool `json:"emulate,omitempty"`
}

// VMPlan is how a virtual machine is to be set up on a machine.
type VMPlan struct {
	Tuned    bool `json:"tuned"`
	Emulated bool `json:"emulated,omitempty"` // in software, without KVM
	// Sockets, Dies, Cores and Threads are what the virtual machine is a grid of: dies of a
	// socket, cores of a die, threads of a core. A grid may have places without a vCPU.
	Sockets int `json:"sockets"`
	Dies    int `json:"dies"`
	Cores   int `json:"cores_per_die"`
	Threads int `json:"threads_per_core"`
	// CPUs are the vCPUs, in the order of their places.
	CPUs []VMCPU `json:"cpus"`
	// HostCPUs are the hardware threads for QEMU's own threads: emulator, I/O, vhost.
	HostCPUs []int `json:"host_cpus"`
	// Memory of the virtual machine, and what is left of the machine's, in bytes.
	Memory     int64 `json:"memory_bytes"`
	HostMemory int64 `json:"host_memory_bytes"`
	// PageSize is of the huge pages that it lies in; 0: ordinary pages.
	PageSize    int64          `json:"page_size_bytes,omitempty"`
	MemoryNodes []VMNode       `json:"memory_nodes"`
	CPUModel    string         `json:"cpu_model"`
	CPUFeatures []string       `json:"cpu_features,omitempty"` // as QEMU writes them
	NIC         VMPlanNIC      `json:"nic"`
	Devices     []VMPlanDevice `json:"devices,omitempty"`
	// Memlock is how much memory QEMU must be allowed to lock, in bytes; 0: none.
	Memlock int64 `json:"memlock_bytes,omitempty"`
	// KernelArguments are what the host's kernel must have been started with.
	KernelArguments []string `json:"kernel_arguments,omitempty"`
	// Settings explain the plan, each with a way to see that it holds.
	Settings []VMSetting `json:"settings"`
	// Lacks are why the plan cannot be carried out; with one of them it is as far as it could
	// be made.
	Lacks []VMLack `json:"lacks"`
}

// VMCPU is a vCPU: its place in the virtual machine, and the hardware thread that runs it.
type VMCPU struct {
	Socket int `json:"socket"`
	Die    int `json:"die"`
	Core   int `json:"core"`
	Thread int `json:"thread"`
	// MemoryNode of the virtual machine.
	MemoryNode int `json:"memory_node"`
	// Host is the hardware thread; nil: any of the virtual machine's.
	Host *int `json:"host_cpu,omitempty"`
}

// VMNode is a memory node of a virtual machine.
type VMNode struct {
	ID int `json:"id"`
	// Host is the memory node of the machine that it lies in; nil: any.
	Host   *int  `json:"host_node,omitempty"`
	Memory int64 `json:"memory_bytes"`
	// Pages are the huge pages that it takes, of VMPlan.PageSize.
	Pages     int64 `json:"pages,omitempty"`
	Distances []int `json:"distances,omitempty"` // to all of the virtual machine's, in order
}

// VMPlanNIC is how a virtual machine comes to its network.
type VMPlanNIC struct {
	Kind string `json:"kind"` // virtio, vf
	// Card is the PCI address of the card that its packets go through, where that is known.
	Card string `json:"card,omitempty"`
	// Function is the PCI address of the virtual function; "": one that is to be made.
	Function string `json:"function,omitempty"`
	// MemoryNode of the virtual machine that the card is nearest to; nil: none, or not known.
	MemoryNode *int `json:"memory_node,omitempty"`
	// Queues are pairs of virtio's queues.
	Queues int `json:"queues,omitempty"`
	// InterruptCPUs are the hardware threads that take the card's interrupts for it.
	InterruptCPUs []int `json:"interrupt_cpus,omitempty"`
}

// VMPlanDevice is a PCI device that a virtual machine gets whole.
type VMPlanDevice struct {
	Address string `json:"address"`
	Group   *int   `json:"iommu_group,omitempty"`
	// Asked: by its address; others come along because they are in one group.
	Asked      bool `json:"asked"`
	MemoryNode *int `json:"memory_node,omitempty"` // of the virtual machine
}

// VMSetting is one thing that a plan sets.
type VMSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
	// Read is the file that shows whether it holds; {pid} and {tid} are QEMU's process and
	// the thread of a vCPU. Expect is what stands there.
	Read   string `json:"read"`
	Expect string `json:"expect"`
}

// VMLack is something without which a virtual machine cannot be as it is wanted.
type VMLack struct {
	Reason string `json:"reason"`
	Text   string `json:"text"`
	Cure   string `json:"cure"`
}

// Reasons of VMLack.
const (
	LackKVM       = "no-kvm"     // the host's kernel runs no virtual machines
	LackIOMMU     = "no-iommu"   // devices cannot be given away safely
	LackVF        = "no-vf"      // no card has virtual functions
	LackVFGroup   = "vf-group"   // a device shares its IOMMU group with another
	LackHugePages = "huge-pages" // not of that size, or too few
	LackCores     = "vm-cores"   // too few, or too many for QEMU
	LackMemory    = "vm-memory"  // too little
	LackTopology  = "vm-topology"
	LackDevice    = "vm-device" // there is none, or the host needs it
	LackSave      = "vm-save"   // it could not be saved
	LackOption    = "vm-option" // an option that there is not
)
