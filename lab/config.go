package lab

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/document"
)

// Class is a number of machines with the same hardware.
type Class struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	Cores int    `json:"cores"`
	// Sockets divide cores and memory evenly, each with a memory node; 0 and 1: one.
	Sockets int   `json:"sockets,omitempty"`
	Memory  int64 `json:"memory_bytes"` // bytes
	Disk    int64 `json:"disk_bytes"`   // bytes
	// NVMe is the size of a second disk, in bytes, which reports how it is; 0: none.
	NVMe int64 `json:"nvme_bytes,omitempty"`
}

// Config is what a lab consists of.
type Config struct {
	Classes []Class `json:"classes"`
	UEFI    bool    `json:"uefi"`
	TPM     bool    `json:"tpm"`
	NoBMC   bool    `json:"no_bmc"`
	Racks   int     `json:"racks"`
	// Net is the management network; its first address is the server's.
	Net netip.Prefix `json:"net"`
	// Uplink is the name of the server's interface where the command runs; empty:
	// the server runs inside the lab, where it is called Inside.
	Uplink string `json:"uplink,omitempty"`
	// NoKVM emulates machines even where the processor could run them.
	NoKVM bool `json:"no_kvm"`
	// KVM is found out when the lab is made.
	KVM bool `json:"kvm"`
}

const configDoc document.Kind[Config] = "lab/1"

// Inside is the server's interface in the lab's own network namespace.
const Inside = "mgmt0"

// Limits of a lab.
const (
	MaxMachines = 200
	minMemory   = 64 << 20
)

// DefaultNet is the management network of labs that do not say another.
func DefaultNet() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77}), 16) }

// goodName is what classes and interfaces may be called.
var goodName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,13}$`)

// Check says everything that is wrong with a lab at once.
func (c Config) Check() error {
	e := muster.Errorf(muster.EInvalid, "the lab cannot be made so")
	bad := func(field, hint, message string, args ...any) {
		e.Problems = append(e.Problems, muster.Problem{Field: field, Message: fmt.Sprintf(message, args...), Hint: hint})
	}
	seen := map[string]bool{}
	for _, k := range c.Classes {
		field := "machines " + k.Name
		if !goodName.MatchString(k.Name) {
			bad(field, "use lower-case letters, digits and -", "%q is not a class name", k.Name)
		}
		if seen[k.Name] {
			bad(field, "name every class once", "it is there twice")
		}
		seen[k.Name] = true
		if k.Count < 1 {
			bad(field, "write a number such as 4", "%d machines", k.Count)
		}
		if k.Cores < 1 || k.Cores > 64 {
			bad(field, "use 1 to 64", "%d cores", k.Cores)
		}
		if k.Sockets < 0 || k.Sockets > 1 && (k.Cores%k.Sockets != 0 || k.Memory/int64(k.Sockets)%(128<<20) != 0) {
			bad(field, "use as many as divide the cores, with memory in parts of 128MiB", "%d sockets", k.Sockets)
		}
		if k.Memory < minMemory || k.Memory%(1<<20) != 0 {
			bad(field, "write whole MiB, such as 1GiB", "%d bytes of memory", k.Memory)
		}
		if k.Disk < 1<<20 || k.Disk%512 != 0 {
			bad(field, "write a size such as 8GiB", "%d bytes of disk", k.Disk)
		}
		if k.NVMe != 0 && (k.NVMe < 1<<20 || k.NVMe%512 != 0) {
			bad(field, "write a size such as 64MiB, or leave it out", "%d bytes of NVMe", k.NVMe)
		}
	}
	if n := c.Machines(); n < 1 || n > MaxMachines {
		bad("machines", fmt.Sprintf("use 1 to %d", MaxMachines), "%d machines", n)
	}
	if c.Racks < 1 || c.Racks > max(1, c.Machines()) {
		bad("racks", "use 1, or as many as there are machines at most", "%d racks", c.Racks)
	}
	if !c.Net.IsValid() || !c.Net.Addr().Is4() || c.Net.Bits() > 22 || c.Net.Bits() < 8 || c.Net != c.Net.Masked() {
		bad("net", "write it like 10.77.0.0/16, with /22 or wider", "%s is not a network that the lab could use", c.Net)
	}
	if c.Uplink != "" && (!goodName.MatchString(c.Uplink) || len(c.Uplink) > 15) {
		bad("uplink", "use up to 14 lower-case letters, digits and -", "%q is not an interface name", c.Uplink)
	}
	if len(e.Problems) > 0 {
		return e
	}
	return nil
}

// Machines is how many there are.
func (c Config) Machines() int {
	n := 0
	for _, k := range c.Classes {
		n += k.Count
	}
	return n
}

// differences says in words how another lab is not of the same make.
func (c Config) differences(o Config) []string {
	var list []string
	differ := func(what string, have, want any) {
		if h, w := fmt.Sprint(have), fmt.Sprint(want); h != w {
			list = append(list, fmt.Sprintf("%s: %s, not %s", what, cmp.Or(h, "none"), cmp.Or(w, "none")))
		}
	}
	differ("machines", machinesText(c.Classes), machinesText(o.Classes))
	differ("UEFI", yesNo(c.UEFI), yesNo(o.UEFI))
	differ("TPM", yesNo(c.TPM), yesNo(o.TPM))
	differ("management controllers", yesNo(!c.NoBMC), yesNo(!o.NoBMC))
	differ("racks", c.Racks, o.Racks)
	differ("network", c.Net, o.Net)
	differ("uplink", c.Uplink, o.Uplink)
	differ("KVM where it works", yesNo(!c.NoKVM), yesNo(!o.NoKVM))
	return list
}

// machinesText is what --machines says.
func machinesText(list []Class) string {
	parts := make([]string, len(list))
	for i, k := range list {
		parts[i] = fmt.Sprintf("%d,class=%s,cores=%d,memory=%dMiB,disk=%dMiB", k.Count, k.Name, k.Cores, k.Memory>>20, k.Disk>>20)
		if k.Sockets > 1 {
			parts[i] += fmt.Sprintf(",sockets=%d", k.Sockets)
		}
		if k.NVMe > 0 {
			parts[i] += fmt.Sprintf(",nvme=%dMiB", k.NVMe>>20)
		}
	}
	return strings.Join(parts, " and ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// Server is the server's address in the management network.
func (c Config) Server() netip.Prefix {
	return netip.PrefixFrom(c.Net.Masked().Addr().Next(), c.Net.Bits())
}

// controller is the address of the n-th management controller, from 0: they have
// the upper half of the network.
func (c Config) controller(n int) netip.Addr {
	a := c.Net.Masked().Addr().As4()
	v := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
	v += 1<<(31-c.Net.Bits()) + uint32(n) + 1
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}
