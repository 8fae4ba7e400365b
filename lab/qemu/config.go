package qemu

// Config is the hardware of one virtual machine, and where its files are.
type Config struct {
	Name   string // of the process, for people
	UUID   string // SMBIOS
	Serial string // SMBIOS
	Vendor string // SMBIOS
	Model  string // SMBIOS

	Cores int
	// Sockets divide cores and memory evenly; each has a memory node. 0 and 1: one.
	Sockets int
	Memory  int64 // bytes
	KVM     bool  // the host's processor executes; otherwise QEMU translates
	NICs    []NIC // the first boots by network

	UEFI     bool
	Code     string // UEFI: the firmware, read only
	Vars     string // UEFI: the machine's own settings
	Disk     string // raw image
	NVMe     string // raw image of a second disk, which reports how it is; "": none
	DiskOnly bool   // boot from the disk first, this time

	TPM        string // socket of swtpm; "": no TPM
	MonitorFD  int    // inherited: one end of a socket pair that speaks QMP
	Console    string // socket of the serial console
	ConsoleLog string // what came on it; added to
}

// NIC is a network card on an inherited tap.
type NIC struct {
	ID  string // name in QMP
	MAC string
	FD  int // inherited
}
