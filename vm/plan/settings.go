package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cpulist"
	"github.com/muster-hpc/muster/internal/plaintext"
)

func (m *maker) set(name, value, reason, read, expect string) {
	m.plan.Settings = append(m.plan.Settings, muster.VMSetting{Name: name, Value: value, Reason: reason, Read: read, Expect: expect})
}

const taskStatus = "/proc/{pid}/task/{tid}/status"

// settings explain the plan.
func (m *maker) settings() {
	m.memorySettings()
	m.threadSettings()
	m.guestSettings()
	m.processorSettings()
	m.networkSettings()
	m.deviceSettings()
}

func (m *maker) memorySettings() {
	p := &m.plan
	if p.Memory == 0 {
		return // there is none, or nobody said
	}
	where := "ordinary pages of any memory node"
	read, expect := "/proc/{pid}/status", fmt.Sprintf("VmSize above %d kB", p.Memory>>10)
	if m.tuned() {
		var parts []string
		for _, n := range p.MemoryNodes {
			parts = append(parts, fmt.Sprintf("%s of memory node %d", plaintext.Bytes(n.Memory), *n.Host))
		}
		where = strings.Join(parts, ", ")
		read, expect = "/proc/{pid}/numa_maps", bound(p)
		if p.PageSize == 0 {
			where += " in ordinary pages"
		}
	}
	m.set("memory", fmt.Sprintf("%s: %s; %s are left to the host", plaintext.Bytes(p.Memory), where, plaintext.Bytes(p.HostMemory)),
		"what the host needs for its kernel, its services and QEMU is left to it, so that it never takes pages of the virtual machine", read, expect)
	for _, n := range p.MemoryNodes {
		if p.PageSize == 0 || n.Pages == 0 {
			continue
		}
		pool := fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-%dkB/", *n.Host, p.PageSize>>10)
		m.set("huge-pages:"+strconv.Itoa(*n.Host), fmt.Sprintf("%d of %s in memory node %d%s", n.Pages, plaintext.Bytes(p.PageSize), *n.Host, m.pagesMissing(n)),
			"with small pages each miss of the TLB walks two page tables, the virtual machine's and the host's, in up to 24 steps; and they are never swapped",
			pool+"nr_hugepages", fmt.Sprintf("%d or more, and free_hugepages fewer by %d while it runs", n.Pages, n.Pages))
	}
	if p.Memlock > 0 {
		m.set("memlock", fmt.Sprintf("QEMU may lock %s", plaintext.Bytes(p.Memlock)), "a passed-through device writes to memory by itself, so all of it is locked; without the right QEMU does not start",
			"/proc/{pid}/limits", fmt.Sprintf("Max locked memory: %d or more, or unlimited", p.Memlock))
	}
	m.set("balloon", "none", "a balloon takes memory away while programs run, and breaks huge pages", "in the virtual machine: /sys/bus/virtio/drivers/virtio_balloon", "no device, or no such driver")
	if m.tuned() && p.PageSize == 0 {
		m.set("huge-pages", "none: ordinary pages", "the host has not enough of them", "/proc/{pid}/status", "HugetlbPages: 0 kB")
	}
	m.set("page-merging", "off for its memory", "merged pages are copied when they are written, and their timing shows one tenant what is in another's memory", "/proc/{pid}/smaps", "no VmFlags with mg")
}

// bound is what numa_maps shows of the memory.
func bound(p *muster.VMPlan) string {
	var parts []string
	for _, n := range p.MemoryNodes {
		if n.Memory > 0 {
			text := fmt.Sprintf("bind:%d", *n.Host)
			if p.PageSize > 0 {
				text += fmt.Sprintf(" with N%d=%d kernelpagesize_kB=%d", *n.Host, n.Pages, p.PageSize>>10)
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

func (m *maker) threadSettings() {
	p := &m.plan
	if !m.tuned() {
		m.set("vcpu-pins", fmt.Sprintf("%s, where the host's scheduler puts them", plaintext.Count(len(p.CPUs), "vCPU")), "the untuned virtual machine is for comparison", taskStatus, "Cpus_allowed_list: as of QEMU itself")
		return
	}
	var pins []string
	for i, c := range p.CPUs {
		pins = append(pins, fmt.Sprintf("%d:%d", i, *c.Host))
	}
	m.set("vcpu-pins", strings.Join(pins, " "), "each vCPU has a hardware thread of its own, so that it keeps its caches and never waits for another", taskStatus,
		"Cpus_allowed_list: the hardware thread of that vCPU, no other")
	mine := threadsOf(m.taken)
	m.set("siblings", cpulist.Format(mine), "a hardware thread shares its core with its siblings, so all of a core are of one virtual machine: nobody slows it or watches its caches",
		"/sys/devices/system/cpu/cpu{host}/topology/thread_siblings_list", "none that is not in the list")
	text, reason := cpulist.Format(p.HostCPUs), "QEMU's own threads, for devices and packets, interrupt no vCPU"
	if len(m.kept) == 0 {
		text += ", which are the vCPUs'"
		reason = "no core is left over: QEMU's own threads, for devices and packets, take time of the vCPUs"
	}
	m.set("host-threads", text, reason, "/proc/{pid}/status and, of I/O and vhost threads, "+taskStatus, "Cpus_allowed_list: "+cpulist.Format(p.HostCPUs))
	m.set("steal-time", "none", "whatever waits for a hardware thread was not alone on it", "in the virtual machine: /proc/stat", "the eighth number of each cpu line stays as it is")
}

func (m *maker) guestSettings() {
	p := &m.plan
	grid := fmt.Sprintf("%s, %s each, %s each, %s each", plaintext.Count(p.Sockets, "socket"), plaintext.Count(p.Dies, "die"), plaintext.Count(p.Cores, "core"), plaintext.Count(p.Threads, "thread"))
	if n := p.Sockets * p.Dies * p.Cores * p.Threads; n > len(p.CPUs) {
		grid += fmt.Sprintf("; %d of %d places have a vCPU", len(p.CPUs), n)
	}
	if !m.tuned() {
		m.set("topology", grid, "the untuned virtual machine knows nothing of sockets and memory nodes", "in the virtual machine: lscpu", "one socket")
		return
	}
	m.set("topology", grid, "programs that place themselves (MPI, OpenMP, Slurm) see the sockets, caches and siblings that there are", "in the virtual machine: lstopo, /sys/devices/system/cpu/cpu*/topology",
		"as on the host, without the cores that it keeps")
	if len(p.MemoryNodes) > 1 {
		var rows []string
		for _, n := range p.MemoryNodes {
			if n.Distances != nil {
				rows = append(rows, strings.Trim(fmt.Sprint(n.Distances), "[]"))
			}
		}
		value, expect := plaintext.Count(len(p.MemoryNodes), "memory node"), "as many nodes"
		if len(rows) > 0 {
			value, expect = value+", distances "+strings.Join(rows, " / "), strings.Join(rows, " / ")
		}
		m.set("memory-nodes", value, "a program finds the memory that is near to its cores, because each memory node of it lies in one of the host's", "in the virtual machine: /sys/devices/system/node/node*/distance", expect)
	}
}

func (m *maker) processorSettings() {
	p := &m.plan
	switch {
	case p.Emulated:
		m.set("cpu", p.CPUModel+", in software", "the host has no KVM: nothing that is measured here says anything of speed", "in the virtual machine: /proc/cpuinfo", "model name of QEMU's processor")
	case p.CPUModel == "host":
		m.set("cpu", "host", "programs use every instruction that the processor has", "in the virtual machine: /proc/cpuinfo", "the model name that the host's has")
	default:
		m.set("cpu", p.CPUModel, "asked for: it runs on every processor that has what this model has, and uses no more", "in the virtual machine: /proc/cpuinfo", "the model name of "+p.CPUModel)
	}
	if slices.Contains(p.CPUFeatures, "host-cache-info=on") {
		m.set("caches", "the host's", "libraries choose block sizes by them", "in the virtual machine: /sys/devices/system/cpu/cpu*/cache/index*/size", "the sizes that the host has")
	}
	if slices.Contains(p.CPUFeatures, "x2apic=on") {
		m.set("x2apic", "on", "interrupts between vCPUs take fewer exits, and more than 255 vCPUs need it", "in the virtual machine: /proc/cpuinfo", "flags with x2apic")
	}
	if !p.Emulated {
		if m.opt.Save {
			m.set("invtsc", "off", "after it was saved it may go on where the clock of the processor has another rate", "in the virtual machine: /proc/cpuinfo", "flags without nonstop_tsc")
		} else if p.CPUModel == "host" {
			m.set("invtsc", "as the host has it", "a clock that always runs at one rate is read without leaving the virtual machine; it cannot be saved for that", "in the virtual machine: /proc/cpuinfo", "nonstop_tsc if the host has it")
		}
	}
	for _, f := range p.CPUFeatures {
		if f == "vmx=off" || f == "svm=off" {
			m.set("nested", "off", "a tenant has no use for virtual machines inside their own, and the host's kernel has less to defend", "in the virtual machine: /proc/cpuinfo", "flags without "+strings.TrimSuffix(f, "=off"))
		}
	}
}

func (m *maker) networkSettings() {
	n := &m.plan.NIC
	near := ""
	if n.MemoryNode != nil {
		near = fmt.Sprintf(", at its memory node %d", *n.MemoryNode)
	}
	if n.Kind == muster.VMNICFunction {
		if n.Card == "" {
			return
		}
		value, name := "a virtual function of "+n.Card, n.Function
		if name == "" {
			name = "{function}"
		} else {
			value = name + ", a virtual function of " + n.Card
		}
		m.set("nic", value+near, "packets go between card and virtual machine without the host", "/sys/bus/pci/devices/"+name+"/driver", "a link to vfio-pci")
		m.set("nic-group", "its IOMMU group is its own", "whoever has one device of a group reaches the others", "/sys/bus/pci/devices/"+name+"/iommu_group/devices", "that address and no other")
		m.set("nic-guard", "MAC, VLAN and spoof check by the physical function", "the card itself drops what bears another sender, whatever the tenant does to its driver", "ip -json link show dev (of "+n.Card+")", "of that vf: spoofchk true, trust off, the mac and vlan that were set")
	} else {
		value := fmt.Sprintf("virtio, %s", plaintext.Count(n.Queues, "pair of queues"))
		if n.Queues != 1 {
			value = fmt.Sprintf("virtio, %d pairs of queues", n.Queues)
		}
		reason := "each core near the card sends and receives by itself"
		if !m.tuned() {
			reason = "the untuned virtual machine has what QEMU gives without being asked"
		}
		m.set("nic", value+near, reason, "in the virtual machine: /sys/class/net/*/queues", fmt.Sprintf("%d rx-*, %d tx-*", n.Queues, n.Queues))
	}
	if len(n.InterruptCPUs) > 0 {
		reason := "an interrupt of the card is taken where its packets are used"
		if n.Kind == muster.VMNICVirtio {
			reason = "an interrupt of the card is taken where the packets are passed on, and no vCPU is stopped for it"
		}
		m.set("nic-interrupts", cpulist.Format(n.InterruptCPUs), reason, "/proc/irq/{irq}/effective_affinity_list of each in /sys/bus/pci/devices/"+n.Card+"/msi_irqs", "hardware threads of that list")
	}
}

func (m *maker) deviceSettings() {
	for _, d := range m.plan.Devices {
		value, reason := d.Address, "asked for"
		if m.host.Slice {
			reason = "its server gives it to the virtual machine of this machine (--vm-device): programs have it without the host"
		}
		if d.Group != nil {
			value += fmt.Sprintf(", IOMMU group %d", *d.Group)
		}
		if d.MemoryNode != nil {
			value += fmt.Sprintf(", at its memory node %d", *d.MemoryNode)
		}
		if !d.Asked {
			reason = "is in the IOMMU group of a device that is asked for, and whoever has one of a group reaches the others"
		}
		m.set("device:"+d.Address, value, reason, "/sys/bus/pci/devices/"+d.Address+"/driver, iommu_group, numa_node", "links to vfio-pci and to that group, and the host's number of that memory node")
	}
}

// pagesMissing says how many huge pages of a slice's host are not set aside yet: they are taken of
// its free memory when the virtual machine starts, and given back after. If that has too few in one
// piece, ordinary pages are taken. A whole computer is booted for it.
func (m *maker) pagesMissing(v muster.VMNode) string {
	if m.host.VM == nil || !m.host.Slice || m.host.OwnBoot {
		return ""
	}
	for _, n := range m.host.VM.MemoryNodes {
		if n.ID != *v.Host {
			continue
		}
		for _, pool := range n.Pages {
			if pool.Size == m.plan.PageSize && pool.Free < v.Pages {
				return fmt.Sprintf("; its host has %d free now, and sets aside %d more while it runs", pool.Free, v.Pages-pool.Free)
			}
		}
	}
	return ""
}
