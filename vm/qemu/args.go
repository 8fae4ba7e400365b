package qemu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/accel"
)

// Args is the command line of a machine, without the program. Same machine, same line.
func Args(m *Machine) []string {
	args := []string{
		"-name", "guest=" + value(m.Name) + ",process=vm-" + value(m.Name) + ",debug-threads=on",
		"-nodefaults", "-no-user-config", "-display", "none",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		// Without what no server's node misses: each device costs the kernel a driver, and is
		// code that a tenant reaches. Memory is in no dump of the process, and is never
		// shared with that of other tenants.
		"-machine", m.Type + ",graphics=off,sata=off,smbus=off,usb=off,i8042=off,vmport=off,dump-guest-core=off,mem-merge=off" + m.board(),
		"-accel", accelerator(m),
		"-cpu", m.processor(),
		"-uuid", m.UUID,
		"-smbios", "type=1,manufacturer=Muster,product=VM,serial=" + value(m.Name) + ",uuid=" + m.UUID,
		"-chardev", fmt.Sprintf("socket,id=monitor,fd=%d", m.Monitor),
		"-mon", "chardev=monitor,mode=control",
		"-chardev", fmt.Sprintf("socket,id=console,fd=%d", m.Console),
		"-serial", "chardev:console",
		"-chardev", fmt.Sprintf("socket,id=channel,fd=%d", m.Channel),
		"-serial", "chardev:channel",
		"-device", "pvpanic", "-device", "virtio-rng-pci",
		// A machine that starts again is another boot, with a task of its own; one whose kernel
		// panics is off.
		"-action", "reboot=shutdown,shutdown=poweroff,panic=shutdown",
		"-kernel", m.Kernel, "-initrd", m.Initramfs, "-append", strings.Join(m.Append, " "),
	}
	if m.Incoming {
		args = append(args, "-S", "-incoming", "defer")
	}
	args = append(args, m.layout()...)
	thread := ""
	if m.Plan != nil && m.Plan.Tuned {
		args = append(args, "-object", "iothread,id="+IOThread)
		thread = ",iothread=" + IOThread
	}
	for i, d := range m.Disks {
		set := i + 1
		drive := fmt.Sprintf("if=none,id=disk%d,format=raw,file.driver=file,file.filename=/dev/fdset/%d,file.locking=off", i, set)
		if d.ReadOnly {
			drive += ",readonly=on"
		} else {
			// It would be opened for reading first, and its descriptor is for both.
			drive += ",auto-read-only=off,file.auto-read-only=off,discard=unmap,detect-zeroes=unmap"
		}
		args = append(args, "-add-fd", fmt.Sprintf("fd=%d,set=%d", d.FD, set), "-drive", drive,
			"-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d,serial=%s%s", i, value(d.Serial), thread))
	}
	slots := &Slots{}
	if m.Plan != nil {
		slots.Nodes = len(m.Plan.MemoryNodes)
	}
	for _, n := range m.NICs {
		if n.Function != "" {
			args = append(args, function(&n, slots)...)
			continue
		}
		fds, several := "fd="+strconv.Itoa(n.FD), ""
		if n.Queues > 1 {
			var list []string
			for i := range n.Queues {
				list = append(list, strconv.Itoa(n.FD+i))
			}
			fds, several = "fds="+strings.Join(list, ":"), fmt.Sprintf(",mq=on,vectors=%d", 2*n.Queues+2)
		}
		args = append(args, "-netdev", fmt.Sprintf("tap,id=%s,%s,vhost=off", value(n.ID), fds),
			"-device", fmt.Sprintf("virtio-net-pci,id=%s-card,netdev=%s,mac=%s,romfile=%s", value(n.ID), value(n.ID), n.MAC, several))
	}
	for i, d := range m.Devices {
		port, bus := slots.Port(d.MemoryNode)
		args = append(append(args, port...), "-device", fmt.Sprintf("vfio-pci,sysfsdev=%s/%s,id=device%d,bus=%s", Functions, d.Address, i, bus))
	}
	return args
}

// function is a card that is passed through, in a slot at its memory node where the machine has several.
func function(n *NIC, slots *Slots) []string {
	var args []string
	bus := ""
	if n.MemoryNode != nil && slots.Nodes > 1 {
		args, bus = slots.Port(n.MemoryNode)
		bus = ",bus=" + bus
	}
	return append(args, "-device", fmt.Sprintf("vfio-pci,sysfsdev=%s/%s,id=%s-card%s", Functions, n.Function, n.ID, bus))
}

// translated bounds what QEMU keeps of a program that it has translated, in MiB: it belongs to
// the machine, whose control group is not much larger than its memory.
const translated = 64

func accelerator(m *Machine) string {
	if m.KVM {
		return accel.Name(true)
	}
	return accel.Name(false) + ",tb-size=" + strconv.Itoa(translated)
}

func (m *Machine) processor() string {
	if m.CPU != "" {
		return m.CPU
	}
	if m.Plan != nil {
		return Processor(m.Plan)
	}
	return accel.Processor(m.KVM)
}

// Overhead is how many bytes beside its memory a machine's QEMU takes, at most: so much larger is its
// control group.
func Overhead(m *Machine) int64 {
	n := int64(128<<20) + m.Memory/64 // its code and heap, the kernel and initramfs; tables of pages
	if !m.KVM {
		n += translated << 20
	}
	return n
}

// page is the size that memory of machines is a multiple of: that of small huge pages, so that one without
// them is as large as one with them.
const page = 2 << 20

// Within is the memory of a machine that has so many bytes with its Overhead, in whole pages: of
// muster.VMPages1GiB, or of 2 MiB.
func Within(bytes int64, kvm bool, pages string) int64 {
	size := int64(page)
	if pages == muster.VMPages1GiB {
		size = 1 << 30
	}
	fixed := Overhead(&Machine{KVM: kvm})
	return max(0, bytes-fixed) * 64 / 65 / size * size
}

// value writes a text as QEMU reads it in a list: commas are doubled.
func value(s string) string { return strings.ReplaceAll(s, ",", ",,") }
