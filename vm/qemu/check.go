package qemu

import (
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/muster-hpc/muster"
)

// maxQueues bounds pairs of queues of a card.
const maxQueues = 16

// maxDevices bounds devices that are passed through: each has a slot of the root bus, which has 32.
const maxDevices = 16

// Check finds everything in a machine that QEMU would not take, or take for something else.
// The error is EInvalid.
func (m *Machine) Check() error {
	var problems []muster.Problem
	want := func(ok bool, field, format string, args ...any) {
		if !ok {
			problems = append(problems, muster.Problem{Field: field, Message: fmt.Sprintf(format, args...), Reason: muster.ReasonBadValue})
		}
	}
	name := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$`)
	serial := regexp.MustCompile(`^[A-Za-z0-9-]{1,20}$`)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	address := regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	functions := 0
	want(name.MatchString(m.Name), "name", "is not a name of letters, digits, dots and dashes")
	want(uuid.MatchString(m.UUID), "uuid", "is not a UUID")
	want(versioned(m.Type), "type", "is not a machine type with a version, such as pc-q35-7.2")
	want(!strings.ContainsAny(m.CPU, " \n"), "cpu", "is not a processor model")
	want(m.Cores > 0, "cores", "there must be one at least")
	if p := m.Plan; p != nil {
		want(len(p.CPUs) == m.Cores, "plan.cpus", "there are %d, and %d cores", len(p.CPUs), m.Cores)
		want(p.Memory == m.Memory, "plan.memory_bytes", "it is %d, and the memory %d", p.Memory, m.Memory)
		want(p.Emulated != m.KVM, "plan.emulated", "is not what kvm says")
		want(!strings.ContainsAny(Processor(p), " \n"), "plan.cpu_model", "is not a processor model")
	}
	want(m.Memory >= 64<<20, "memory_bytes", "a machine needs 64 MiB at least")
	want(strings.HasPrefix(m.Kernel, "/"), "kernel", "is not a path")
	want(strings.HasPrefix(m.Initramfs, "/"), "initramfs", "is not a path")
	for i, w := range m.Append {
		want(w != "" && !strings.ContainsAny(w, " \t\n\"\x00"), fmt.Sprintf("append[%d]", i), "is not one word")
	}
	said := map[int]string{}
	fd := func(field string, n int) {
		want(n > 2, field, "%d is not an inherited descriptor", n)
		want(said[n] == "", field, "has the same descriptor as %s", said[n])
		said[n] = field
	}
	fd("monitor", m.Monitor)
	fd("console", m.Console)
	fd("channel", m.Channel)
	serials, cards := map[string]bool{}, map[string]bool{}
	for i, d := range m.Disks {
		at := fmt.Sprintf("disks[%d]", i)
		want(serial.MatchString(d.Serial), at+".serial", "is not a name of up to 20 letters, digits and dashes")
		want(!serials[d.Serial], at+".serial", "another disk has it")
		serials[d.Serial] = true
		fd(at+".fd", d.FD)
	}
	for i, n := range m.NICs {
		at := fmt.Sprintf("nics[%d]", i)
		want(name.MatchString(n.ID), at+".id", "is not a name of letters, digits, dots and dashes")
		want(!cards[n.ID], at+".id", "another card has it")
		cards[n.ID] = true
		mac, err := net.ParseMAC(n.MAC)
		want(err == nil && len(mac) == 6 && mac[0]&1 == 0, at+".mac", "is not the MAC address of a card")
		want(n.Queues >= 0 && n.Queues <= maxQueues, at+".queues", "there are 1 to %d", maxQueues)
		if n.Function != "" {
			want(address.MatchString(n.Function), at+".function", "is not the address of a PCI device")
			want(n.Queues == 0, at+".queues", "a virtual function has its own")
			functions++
			want(functions < 2, at+".function", "there is one for a machine")
			if n.MemoryNode != nil {
				want(*n.MemoryNode >= 0 && m.Plan != nil && *n.MemoryNode < len(m.Plan.MemoryNodes), at+".memory_node", "the machine has no such memory node")
			}
		}
		for i := range min(n.FDs(), maxQueues) {
			fd(at+".fd", n.FD+i)
		}
	}
	passed := map[string]bool{}
	for _, n := range m.NICs {
		passed[n.Function] = true
	}
	want(len(m.Devices) <= maxDevices, "devices", "there are %d, and %d at most", len(m.Devices), maxDevices)
	for i, d := range m.Devices {
		at := fmt.Sprintf("devices[%d]", i)
		want(address.MatchString(d.Address), at+".address", "is not the address of a PCI device")
		want(!passed[d.Address], at+".address", "is there twice")
		passed[d.Address] = true
		if d.MemoryNode != nil {
			want(*d.MemoryNode >= 0 && m.Plan != nil && *d.MemoryNode < len(m.Plan.MemoryNodes), at+".memory_node", "the machine has no such memory node")
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return muster.Errorf(muster.EInvalid, "the virtual machine cannot be made").Because(muster.ReasonBadValue).Listing(problems)
}
