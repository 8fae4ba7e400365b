package plan

import (
	"slices"

	"github.com/muster-hpc/muster"
)

// Host is the machine that is to carry a virtual machine.
type Host struct {
	// Topology has the hardware threads that the virtual machine may use.
	Topology muster.Topology
	// VM is what the machine has for virtual machines; nil: nobody said.
	VM *muster.VMHost
	// Slice: the machine is a part of a host, of Memory bytes, and has neither memory nodes
	// nor devices of its own, but the virtual functions that VM lists and the devices that are Given there.
	Slice  bool
	Memory int64
	// OwnBoot: the host is booted for virtual machines, with the kernel arguments and modules
	// that the plan needs. What these can set is not lacking.
	OwnBoot bool
	// Ordinary: nobody asked for huge pages, or they could not be had. Its memory lies in ordinary ones.
	Ordinary bool
}

// maker is a plan in the making.
type maker struct {
	host  Host
	opt   muster.VMOptions
	cores []core // that may be used
	taken []core // for the virtual machine
	kept  []core // for the host
	plan  muster.VMPlan
	page  int64       // bytes of which its memory is a multiple: of a huge page
	node  map[int]int // of the virtual machine, by the host's
	card  *muster.PCIDevice
}

// Make plans a virtual machine. The same host and options have the same plan.
func Make(h Host, o muster.VMOptions) muster.VMPlan {
	if h.VM != nil {
		vm := *h.VM
		vm.Devices = slices.DeleteFunc(slices.Clone(vm.Devices), func(d muster.PCIDevice) bool { return !pciAddress.MatchString(d.Address) })
		h.VM = &vm
	}
	m := &maker{host: h, opt: o, page: pageSize(o), node: map[int]int{}}
	m.plan = muster.VMPlan{Tuned: !o.Untuned, CPUs: []muster.VMCPU{}, HostCPUs: []int{}, MemoryNodes: []muster.VMNode{}, Settings: []muster.VMSetting{}, Lacks: []muster.VMLack{}}
	m.plan.Lacks = append(m.plan.Lacks, wrongOptions(o)...)
	m.plan.Lacks = append(m.plan.Lacks, lacks(h.VM, o, h.OwnBoot, h.Slice)...)
	if h.Ordinary {
		m.plan.Lacks = slices.DeleteFunc(m.plan.Lacks, func(l muster.VMLack) bool { return l.Reason == muster.LackHugePages })
	}
	if h.VM != nil && !h.VM.KVM && o.Emulate && !(h.OwnBoot && h.VM.Virtualization != "") {
		m.plan.Emulated = true
	}
	if m.cores = coresOf(h.Topology); len(m.cores) == 0 {
		m.lack(muster.LackTopology, "nothing is known of the machine's cores", "ask again when it runs a node, or was measured")
		return m.plan
	}
	m.chooseCard()
	m.chooseCores()
	m.place()
	m.memory()
	m.processor()
	m.network()
	m.devices()
	m.start()
	m.settings()
	return m.plan
}

func (m *maker) lack(reason, text, cure string) {
	m.plan.Lacks = append(m.plan.Lacks, muster.VMLack{Reason: reason, Text: text, Cure: cure})
}

func (m *maker) tuned() bool { return !m.opt.Untuned }

// huge reports whether its memory lies in huge pages. What the host is not known to have is not planned.
func (m *maker) huge() bool {
	return m.tuned() && !m.host.Ordinary && m.host.VM != nil && len(m.host.VM.MemoryNodes) > 0
}

// passes reports whether devices are passed through.
func (m *maker) passes() bool { return passes(m.host.VM, m.opt, m.host.Slice) }

func passes(h *muster.VMHost, o muster.VMOptions, slice bool) bool {
	return o.NIC == muster.VMNICFunction || len(o.Devices) > 0 || slice && len(h.Given()) > 0
}

// pageSize is the size of the huge pages that are asked.
func pageSize(o muster.VMOptions) int64 {
	if o.Pages == muster.VMPages1GiB {
		return gib
	}
	return 2 * mib
}

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// start is what the host's kernel must have been started with.
func (m *maker) start() {
	p := &m.plan
	if m.passes() && m.host.VM != nil {
		if m.host.VM.Virtualization == "vmx" {
			p.KernelArguments = append(p.KernelArguments, "intel_iommu=on")
		}
		p.KernelArguments = append(p.KernelArguments, "iommu=pt")
	}
	if p.PageSize == gib && len(p.MemoryNodes) > 0 {
		p.KernelArguments = append(p.KernelArguments, "hugepagesz=1G", "hugepages="+perNode(p.MemoryNodes))
	}
	if m.passes() {
		p.Memlock = p.Memory + gib
	}
}

// threadsOf are the hardware threads of cores, in order.
func threadsOf(list []core) []int {
	out := []int{}
	for _, c := range list {
		out = append(out, c.threads...)
	}
	slices.Sort(out)
	return out
}
