package muster

import (
	"net/netip"
	"time"
)

// Machine is a thing that can run an image.
type Machine struct {
	ID       MachineID    `json:"id"`
	Provider string       `json:"provider"`
	Phase    MachinePhase `json:"phase"`
	Facts    Facts        `json:"facts"`
	// Cluster and Node tell what the machine fills. Both are empty unless
	// Phase is allocated or active.
	Cluster ClusterID `json:"cluster,omitempty"`
	Node    string    `json:"node,omitempty"`
	// Attempt is the node attempt the machine was told to boot for.
	Attempt    int64       `json:"attempt"`
	Conditions []Condition `json:"conditions,omitempty"`
	Note       string      `json:"note,omitempty"` // an administrator's remark
	PhaseSince time.Time   `json:"phase_since,omitzero"`
	// LastSeen is when the provider or its agent last answered for it. It is
	// kept in memory while things go well: heartbeats do not write the store.
	LastSeen time.Time `json:"last_seen,omitzero"`
	// LastClean is the record of the last cleaning.
	LastClean *CleanRecord `json:"last_clean,omitempty"`
	// LastTest is the record of the last test.
	LastTest *TestRecord `json:"last_test,omitempty"`
	// TestsFailed counts the tests failed in a row.
	TestsFailed int `json:"tests_failed,omitempty"`
	// Faults are its failures, oldest first, at most MaxFaults.
	Faults []Fault `json:"faults,omitempty"`
	// Intent is what an administrator wants of it next. Nothing is moved by
	// force: a cluster keeps its machine until it gives it back.
	Intent Intent `json:"intent,omitempty"`
	// IntentBy and IntentWhy tell who wants that and why.
	IntentBy  string `json:"intent_by,omitempty"`
	IntentWhy string `json:"intent_why,omitempty"`
}

// MaxFaults is how many faults of a machine its record lists.
const MaxFaults = 16

// Intent is what an administrator wants of a machine.
type Intent string

// Intents.
const (
	IntentNone        Intent = ""
	IntentDrain       Intent = "drain"       // no new cluster; stays free and unused
	IntentMaintenance Intent = "maintenance" // into maintenance once no cluster has it
	IntentTest        Intent = "test"        // tested once no cluster has it
	IntentRetire      Intent = "retire"      // retired once no cluster has it
)

// TestRecord reports what was tried on a machine that was suspected, and whether
// it did what it should.
type TestRecord struct {
	Machine MachineID   `json:"machine"`
	At      time.Time   `json:"at"`
	Took    Duration    `json:"took_seconds"`
	Steps   []CleanStep `json:"steps"`
	Passed  bool        `json:"passed"`
}

// FenceRecord reports how a machine was cut off and how that was verified.
type FenceRecord struct {
	Machine MachineID   `json:"machine"`
	At      time.Time   `json:"at"`
	Took    Duration    `json:"took_seconds"`
	Steps   []CleanStep `json:"steps"`
	Proven  bool        `json:"proven"` // it can neither compute nor speak
}

// MachineEvent is one line of a machine's history.
type MachineEvent struct {
	Machine MachineID `json:"machine"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"` // cluster, fault, fence, test, clean, intent, note, phase, hardware
	Cluster ClusterID `json:"cluster,omitempty"`
	Node    string    `json:"node,omitempty"`
	Text    string    `json:"text"`
	// Steps are the evidence, where there is any.
	Steps []CleanStep `json:"steps,omitempty"`
}

// Facts are what is known about a machine's hardware.
type Facts struct {
	Architecture string   `json:"architecture"` // amd64
	Processor    string   `json:"processor"`    // model name
	CPULevel     int      `json:"cpu_level"`    // x86-64-v1..v4 as 1..4; 0 elsewhere
	Sockets      int      `json:"sockets"`
	Cores        int      `json:"cores"`          // physical cores
	Threads      int      `json:"threads"`        // hardware threads
	CPUs         []int    `json:"cpus,omitempty"` // which host CPUs, for a slice
	NUMA         []NUMA   `json:"numa,omitempty"`
	Memory       int64    `json:"memory_bytes"` // bytes
	Disk         int64    `json:"disk_bytes"`   // bytes of scratch
	NICs         []NIC    `json:"nics,omitempty"`
	Accelerators []Device `json:"accelerators,omitempty"`
	// Modalias of each disk controller, network card and accelerator. Empty for slices of
	// a host.
	Modalias []string `json:"modalias,omitempty"`
	Class    string   `json:"class"`
	Rack     string   `json:"rack"`
	// Leaf is the switch that its message interface is plugged into, and Chassis what it
	// shares with other machines, as its site knows them; "": not known.
	Leaf    string `json:"leaf,omitempty"`
	Chassis string `json:"chassis,omitempty"`
	// Service machines are preferred for separate heads and not used for
	// compute nodes unless named.
	Service bool `json:"service,omitempty"`
	// Oversubscribed machines share cores with others: nothing measured on
	// them can be certified.
	Oversubscribed bool `json:"oversubscribed,omitempty"`
	// Set names the machines that are made of one host beside those of other sets: what
	// serves one of them serves none of another set that shares a part with it.
	Set string `json:"set,omitempty"`
	// Parts name what it shares with machines of other sets. Of all machines with a part
	// one at a time is in use.
	Parts      []string   `json:"parts,omitempty"`
	Management netip.Addr `json:"management,omitzero"`
	Serial     string     `json:"serial,omitempty"`

	// What follows is read where a machine is a whole computer, before its image
	// runs. What could not be read is left out.

	Vendor   string `json:"vendor,omitempty"`   // of the machine, as SMBIOS says it
	Product  string `json:"product,omitempty"`  // its name
	UUID     string `json:"uuid,omitempty"`     // lower case, with dashes
	Firmware string `json:"firmware,omitempty"` // version of BIOS or UEFI
	// BootMode is how its firmware started it.
	BootMode BootMode `json:"boot_mode,omitempty"`
	// DIMMs are the memory modules that are plugged in, by slot.
	DIMMs  []DIMM      `json:"dimms,omitempty"`
	Caches []CacheKind `json:"caches,omitempty"`
	Disks  []Disk      `json:"disks,omitempty"`
	// TPM reports whether there is a TPM 2.0.
	TPM bool `json:"tpm,omitempty"`
	// Lockdown is what the kernel forbids because the firmware started it by Secure Boot: integrity
	// or confidentiality; "": nothing. A kernel that is locked down does not hibernate.
	Lockdown string `json:"lockdown,omitempty"`
	// VMHost is what it has for virtual machines; of a slice, what its host has.
	VMHost *VMHost `json:"vm_host,omitempty"`
	// Topology is how it is built, of a slice: that part of its host, for what its host starts. Others say it when they run.
	Topology *Topology `json:"topology,omitempty"`
}

// DIMM is one memory module.
type DIMM struct {
	Slot   string `json:"slot"`
	Size   int64  `json:"size_bytes"`                    // bytes
	Kind   string `json:"kind,omitempty"`                // DDR5
	Speed  int    `json:"speed_mt_per_second,omitempty"` // million transfers a second, as it is set
	Vendor string `json:"vendor,omitempty"`
	Part   string `json:"part,omitempty"`
	Serial string `json:"serial,omitempty"`
}

// CacheKind is the processor caches of one level and kind.
type CacheKind struct {
	Level int    `json:"level"`
	Kind  string `json:"kind"`       // data, instruction, unified
	Size  int64  `json:"size_bytes"` // bytes of each
	Count int    `json:"count"`      // how many there are
}

// Disk is one local disk.
type Disk struct {
	Name   string `json:"name"` // as the kernel named it in that boot
	Kind   string `json:"kind"` // nvme, ssd, disk (with platters), virtual
	Model  string `json:"model,omitempty"`
	Serial string `json:"serial,omitempty"`
	Size   int64  `json:"size_bytes"` // bytes
	NUMA   *int   `json:"numa,omitempty"`
	// ReadOnly: it is write-protected, so nobody's data come onto it.
	ReadOnly bool `json:"read_only,omitempty"`
}

// NUMA is one memory node of a machine.
type NUMA struct {
	ID     int   `json:"id"`
	CPUs   []int `json:"cpus"`
	Memory int64 `json:"memory_bytes"`
}

// NIC is one network interface.
type NIC struct {
	Name  string `json:"name"`
	MAC   string `json:"mac"`       // of InfiniBand the port's GUID: see ParseMAC
	Kind  string `json:"kind"`      // ethernet, infiniband, veth
	Speed int64  `json:"speed_bps"` // bits/s; 0 unknown
	Use   string `json:"use"`       // message, management

	Driver string `json:"driver,omitempty"`
	// Link reports whether something is at the other end of the cable; "" where that
	// is not known.
	Link string `json:"link,omitempty"` // up, down
	// NUMA is the memory node that it is near to; nil where it is near to all.
	NUMA *int `json:"numa,omitempty"`
	// PCIAddress is where it is plugged in, as the kernel names it: 0000:01:00.0.
	PCIAddress string `json:"pci_address,omitempty"`
	// Neighbour is the switch at its other end, as the switch says it by LLDP.
	Neighbour *Neighbour `json:"neighbour,omitempty"`
}

// NICKinds are the kinds of NICs.
func NICKinds() []string { return []string{"ethernet", "infiniband", "veth"} }

// Neighbour is what a switch says of itself and of a port by LLDP.
type Neighbour struct {
	System  string `json:"system,omitempty"`  // its name
	Chassis string `json:"chassis,omitempty"` // its number, most often a MAC
	Port    string `json:"port,omitempty"`    // number or name of the port
	Text    string `json:"text,omitempty"`    // what somebody wrote of the port
	VLAN    int    `json:"vlan,omitempty"`    // that untagged frames go to
}

// Device is an accelerator.
type Device struct {
	Kind  string `json:"kind"`  // gpu, accelerator
	Model string `json:"model"` // of a PCI device, its vendor:device
	// Name is what people call it, where that is known. Machines are shown with it; it is
	// not on record.
	Name  string `json:"name,omitempty"`
	Count int    `json:"count"`
}

// CleanRecord reports what was done and verified when a machine was cleaned.
type CleanRecord struct {
	Machine  MachineID   `json:"machine"`
	At       time.Time   `json:"at"`
	Took     Duration    `json:"took_seconds"`
	Steps    []CleanStep `json:"steps"`
	Verified bool        `json:"verified"`
}

// CleanStep is one thing erased and how that was checked.
type CleanStep struct {
	What  string `json:"what"`  // processes, root file system, network, ...
	Check string `json:"check"` // "cgroup empty and removed"
	OK    bool   `json:"ok"`
}
