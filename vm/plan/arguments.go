package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
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

// IOThread is the ID of the thread for disks, which runs on VMPlan.HostCPUs.
const IOThread = "io0"

// Arguments are those of QEMU that the plan decides: processors, memory, memory nodes, the
// network card and passed-through devices. A vCPU of the plan is the one of QEMU's
// query-cpus-fast that has its socket, die, core and thread; pins are set by whoever starts
// QEMU. What stands in p is believed: it comes from Make.
func Arguments(p muster.VMPlan, a Attachment) []string {
	w := &writer{plan: p, at: a}
	w.machine()
	w.memory()
	w.processors()
	if p.Tuned {
		w.add("-object", "iothread,id="+IOThread)
	}
	w.network()
	for _, d := range p.Devices {
		w.add("-device", "vfio-pci,host="+d.Address+",bus="+w.port(d.MemoryNode))
	}
	return slices.Concat(w.args, w.late)
}

type writer struct {
	plan    muster.VMPlan
	at      Attachment
	args    []string
	late    []string    // devices, after the buses that they are plugged into
	bridges map[int]int // of memory nodes
	ports   int
}

func (w *writer) add(args ...string) {
	if args[0] == "-device" {
		w.late = append(w.late, args...)
		return
	}
	w.args = append(w.args, args...)
}

func (w *writer) machine() {
	machine := w.at.Machine + ",dump-guest-core=off"
	if w.plan.Tuned {
		machine += ",mem-merge=off"
	}
	if len(w.plan.MemoryNodes) == 1 {
		machine += ",memory-backend=mem0"
	}
	accel := "kvm"
	if w.plan.Emulated {
		accel = "tcg,thread=multi"
	} else if w.places() > 255 {
		machine += ",kernel-irqchip=split" // KVM takes wide destinations of interrupts only so
	}
	w.add("-machine", machine, "-accel", accel, "-cpu", strings.Join(append([]string{w.plan.CPUModel}, w.plan.CPUFeatures...), ","))
}

func (w *writer) places() int {
	return w.plan.Sockets * w.plan.Dies * w.plan.Cores * w.plan.Threads
}

func (w *writer) memory() {
	w.add("-m", "size="+mebibytes(w.plan.Memory))
	several := len(w.plan.MemoryNodes) > 1
	for _, n := range w.plan.MemoryNodes {
		id := "mem" + strconv.Itoa(n.ID)
		if n.Memory > 0 {
			w.add("-object", w.backend(id, n))
		}
		if several {
			node := "node,nodeid=" + strconv.Itoa(n.ID)
			if n.Memory > 0 {
				node += ",memdev=" + id
			}
			w.add("-numa", node)
		}
	}
	if !several {
		return
	}
	for _, n := range w.plan.MemoryNodes {
		for to, d := range n.Distances {
			w.add("-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=%d", n.ID, to, d))
		}
	}
}

func (w *writer) backend(id string, n muster.VMNode) string {
	if w.plan.PageSize == 0 {
		return "memory-backend-ram,id=" + id + ",size=" + mebibytes(n.Memory)
	}
	text := fmt.Sprintf("memory-backend-memfd,id=%s,size=%s,hugetlb=on,hugetlbsize=%s,prealloc=on", id, mebibytes(n.Memory), mebibytes(w.plan.PageSize))
	if n.Host != nil {
		text += fmt.Sprintf(",host-nodes=%d,policy=bind", *n.Host)
	}
	return text
}

// mebibytes is a size as QEMU reads it.
func mebibytes(n int64) string { return strconv.FormatInt(n>>20, 10) + "M" }

// processors are the grid, and the vCPUs behind the first place that has none.
func (w *writer) processors() {
	p := w.plan
	at := map[muster.VMCPU]bool{}
	node := map[[2]int]int{} // of a socket and die
	socket := map[int]int{}
	for _, c := range slices.Backward(p.CPUs) { // the first of each counts
		node[[2]int{c.Socket, c.Die}], socket[c.Socket] = c.MemoryNode, c.MemoryNode
		c.Host, c.MemoryNode = nil, 0
		at[c] = true
	}
	var cpus []string
	first := 0
	var holes []string
	for s := range p.Sockets {
		for d := range p.Dies {
			n, ok := node[[2]int{s, d}]
			if !ok {
				n = socket[s]
			}
			for c := range p.Cores {
				for t := range p.Threads {
					place := fmt.Sprintf("socket-id=%d,core-id=%d,thread-id=%d", s, c, t)
					if p.Dies > 1 { // QEMU refuses the word otherwise
						place += fmt.Sprintf(",die-id=%d", d)
					}
					cpus = append(cpus, fmt.Sprintf("cpu,node-id=%d,%s", n, place))
					switch there := at[muster.VMCPU{Socket: s, Die: d, Core: c, Thread: t}]; {
					case there && len(cpus) == first+1:
						first++
					case there:
						holes = append(holes, p.CPUModel+"-x86_64-cpu,"+place)
					}
				}
			}
		}
	}
	w.add("-smp", fmt.Sprintf("%d,maxcpus=%d,sockets=%d,dies=%d,cores=%d,threads=%d", first, w.places(), p.Sockets, p.Dies, p.Cores, p.Threads))
	if len(p.MemoryNodes) > 1 {
		for _, c := range cpus {
			w.add("-numa", c)
		}
	}
	for _, h := range holes {
		w.add("-device", h)
	}
}

// port is a new slot for a device, at a memory node of the virtual machine.
func (w *writer) port(node *int) string {
	bus := "pcie.0"
	if node != nil && len(w.plan.MemoryNodes) > 1 {
		if w.bridges == nil {
			w.bridges = map[int]int{}
		}
		i, ok := w.bridges[*node]
		if !ok {
			i = len(w.bridges)
			w.bridges[*node] = i
			step := 192 / len(w.plan.MemoryNodes)
			w.add("-device", fmt.Sprintf("pxb-pcie,id=pxb%d,bus=pcie.0,bus_nr=%d,numa_node=%d", i, 64+i*step, *node))
		}
		bus = "pxb" + strconv.Itoa(i)
	}
	w.ports++
	id := "port" + strconv.Itoa(w.ports)
	w.add("-device", fmt.Sprintf("pcie-root-port,id=%s,bus=%s,chassis=%d,slot=%d", id, bus, w.ports, w.ports))
	return id
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
