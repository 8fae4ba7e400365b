package qemu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// IOThread is the ID of the thread for disks, which runs on VMPlan.HostCPUs.
const IOThread = "io0"

// board is what a layout asks of the machine's board.
func (m *Machine) board() string {
	if m.Plan == nil {
		return ""
	}
	return Board(m.Plan)
}

// layout is memory and processors.
func (m *Machine) layout() []string {
	if m.Plan == nil {
		return []string{"-smp", fmt.Sprintf("%d,sockets=1,cores=%d,threads=1", m.Cores, m.Cores), "-m", strconv.FormatInt(m.Memory>>20, 10)}
	}
	return Layout(m.Plan)
}

// Board is what the machine of a plan has beside its type, as QEMU writes it: properties, each with a
// comma before it.
func Board(p *muster.VMPlan) string {
	out := ""
	if len(p.MemoryNodes) == 1 {
		out += ",memory-backend=mem0"
	}
	if !p.Emulated && places(p) > 255 {
		out += ",kernel-irqchip=split" // KVM takes wide destinations of interrupts only so
	}
	return out
}

// Processor is the model of a plan, as QEMU writes it.
func Processor(p *muster.VMPlan) string {
	return strings.Join(append([]string{p.CPUModel}, p.CPUFeatures...), ",")
}

// Layout are the arguments for the memory and the processors of a plan. A vCPU of the plan is the one of
// QEMU's query-cpus-fast that has its socket, die, core and thread; pins are set by whoever starts QEMU.
func Layout(p *muster.VMPlan) []string { return append(memory(p), processors(p)...) }

func places(p *muster.VMPlan) int { return p.Sockets * p.Dies * p.Cores * p.Threads }

func memory(p *muster.VMPlan) []string {
	args := []string{"-m", "size=" + mebibytes(p.Memory)}
	several := len(p.MemoryNodes) > 1
	for _, n := range p.MemoryNodes {
		id := "mem" + strconv.Itoa(n.ID)
		if n.Memory > 0 {
			args = append(args, "-object", backend(p, id, n))
		}
		if several {
			node := "node,nodeid=" + strconv.Itoa(n.ID)
			if n.Memory > 0 {
				node += ",memdev=" + id
			}
			args = append(args, "-numa", node)
		}
	}
	if !several {
		return args
	}
	for _, n := range p.MemoryNodes {
		for to, d := range n.Distances {
			args = append(args, "-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=%d", n.ID, to, d))
		}
	}
	return args
}

func backend(p *muster.VMPlan, id string, n muster.VMNode) string {
	text := "memory-backend-ram,id=" + id + ",size=" + mebibytes(n.Memory)
	if p.PageSize > 0 {
		text = fmt.Sprintf("memory-backend-memfd,id=%s,size=%s,hugetlb=on,hugetlbsize=%s,prealloc=on", id, mebibytes(n.Memory), mebibytes(p.PageSize))
	}
	if n.Host != nil {
		text += fmt.Sprintf(",host-nodes=%d,policy=bind", *n.Host)
	}
	return text
}

// mebibytes is a size as QEMU reads it.
func mebibytes(n int64) string { return strconv.FormatInt(n>>20, 10) + "M" }

// processors are the grid, and the vCPUs behind the first place that has none.
func processors(p *muster.VMPlan) []string {
	at := map[muster.VMCPU]bool{}
	node := map[[2]int]int{} // of a socket and die
	socket := map[int]int{}
	for i := len(p.CPUs) - 1; i >= 0; i-- { // the first of each counts
		c := p.CPUs[i]
		node[[2]int{c.Socket, c.Die}], socket[c.Socket] = c.MemoryNode, c.MemoryNode
		c.Host, c.MemoryNode = nil, 0
		at[c] = true
	}
	var cpus, holes []string
	first := 0
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
	args := []string{"-smp", fmt.Sprintf("%d,maxcpus=%d,sockets=%d,dies=%d,cores=%d,threads=%d", first, places(p), p.Sockets, p.Dies, p.Cores, p.Threads)}
	if len(p.MemoryNodes) > 1 {
		for _, c := range cpus {
			args = append(args, "-numa", c)
		}
	}
	for _, h := range holes {
		args = append(args, "-device", h)
	}
	return args
}
