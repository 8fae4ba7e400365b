package plan

import (
	"fmt"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/accel"
	"github.com/muster-hpc/muster/vm/qemu"
)

// Attachment is what QEMU's arguments name beside the plan.
type Attachment struct {
	// Machine is QEMU's machine type with its version: pc-q35-7.2. A saved state is loaded
	// only into the same.
	Machine string
	// Netdev is the ID of the back end of the network card, for virtio; "": no card.
	Netdev string
	MAC    string
	// Function is the PCI address of the virtual function that was chosen; "" is the plan's.
	Function string
}

// Arguments are those of QEMU that the plan decides: processors, memory, memory nodes, the
// network card and passed-through devices. What stands in p is believed: it comes from Make.
func Arguments(p muster.VMPlan, a Attachment) []string {
	w := &writer{plan: p, at: a, slots: qemu.Slots{Nodes: len(p.MemoryNodes)}}
	machine := a.Machine + ",dump-guest-core=off,mem-merge=off" + qemu.Board(&p)
	w.args = append([]string{"-machine", machine, "-accel", accel.Name(!p.Emulated), "-cpu", qemu.Processor(&p)}, qemu.Layout(&p)...)
	if p.Tuned {
		w.add("-object", "iothread,id="+qemu.IOThread)
	}
	w.network()
	for _, d := range p.Devices {
		w.add("-device", "vfio-pci,host="+d.Address+",bus="+w.port(d.MemoryNode))
	}
	return slices.Concat(w.args, w.late)
}

type writer struct {
	plan  muster.VMPlan
	at    Attachment
	args  []string
	late  []string // devices, after the buses that they are plugged into
	slots qemu.Slots
}

func (w *writer) add(args ...string) {
	if args[0] == "-device" {
		w.late = append(w.late, args...)
		return
	}
	w.args = append(w.args, args...)
}

// port is a new slot for a device, at a memory node of the virtual machine.
func (w *writer) port(node *int) string {
	args, bus := w.slots.Port(node)
	w.late = append(w.late, args...)
	return bus
}

func (w *writer) network() {
	n := w.plan.NIC
	function := w.at.Function
	if function == "" {
		function = n.Function
	}
	switch {
	case n.Kind == muster.VMNICFunction && function != "":
		w.add("-device", "vfio-pci,host="+function+",bus="+w.port(n.MemoryNode))
	case n.Kind == muster.VMNICVirtio && w.at.Netdev != "":
		device := "virtio-net-pci,netdev=" + w.at.Netdev + ",bus=" + w.port(n.MemoryNode)
		if w.at.MAC != "" {
			device += ",mac=" + w.at.MAC
		}
		if n.Queues > 1 {
			device += fmt.Sprintf(",mq=on,vectors=%d", 2*n.Queues+2)
		}
		w.add("-device", device)
	}
}
