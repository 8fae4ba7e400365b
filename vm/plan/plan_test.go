package plan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/host"
	"github.com/muster-hpc/muster/vm/host/hosttest"
	"github.com/muster-hpc/muster/vm/plan"
	"pgregory.net/rapid"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// server is the good host of two sockets: eight cores of two threads each, the card at the
// second.
func server(t testing.TB) plan.Host {
	t.Helper()
	s := host.Source{FS: hosttest.Tree(t, hosttest.TwoSockets, nil)}
	vm := s.Read()
	return plan.Host{Topology: *s.Topology(), VM: &vm}
}

func reasons(p muster.VMPlan) []string {
	list := []string{}
	for _, l := range p.Lacks {
		list = append(list, l.Reason)
	}
	return list
}

func setting(t *testing.T, p muster.VMPlan, name string) muster.VMSetting {
	t.Helper()
	i := slices.IndexFunc(p.Settings, func(s muster.VMSetting) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no %s in %+v", name, p.Settings)
	}
	return p.Settings[i]
}

func TestWholeHost(t *testing.T) {
	t.Parallel()
	p := plan.Make(server(t), muster.VMOptions{NIC: "vf"})
	if len(p.Lacks) > 0 || !p.Tuned || p.Sockets != 2 || p.Dies != 1 || p.Cores != 8 || p.Threads != 2 || len(p.CPUs) != 30 {
		t.Fatalf("%+v", p)
	}
	// The core at the card, with both of its threads, is left to the host.
	if !slices.Equal(p.HostCPUs, []int{8, 24}) {
		t.Errorf("%v", p.HostCPUs)
	}
	if c := p.CPUs[1]; *c.Host != 16 || c.Socket != 0 || c.Core != 0 || c.Thread != 1 || c.MemoryNode != 0 {
		t.Errorf("%+v", c)
	}
	if c := p.CPUs[16]; *c.Host != 9 || c.Socket != 1 || c.MemoryNode != 1 {
		t.Errorf("%+v", c)
	}
	total := int64(131737600+132088192) << 10
	if p.PageSize != 2*mib || p.Memory < (total-2*gib)*9/10 || p.Memory+p.HostMemory != total || p.HostMemory < 2*gib || p.Memlock != p.Memory+gib {
		t.Errorf("%d of %d, %d locked", p.Memory, total, p.Memlock)
	}
	if n := p.MemoryNodes[1]; *n.Host != 1 || n.Pages*p.PageSize != n.Memory || !slices.Equal(n.Distances, []int{20, 10}) {
		t.Errorf("%+v", n)
	}
	if p.NIC.Card != "0000:41:00.0" || p.NIC.Function != "0000:41:00.2" || *p.NIC.MemoryNode != 1 || !slices.Equal(p.NIC.InterruptCPUs, []int{9, 10, 11, 12, 13, 14, 15, 25, 26, 27, 28, 29, 30, 31}) {
		t.Errorf("%+v", p.NIC)
	}
	if want := []string{"migratable=off", "host-cache-info=on", "vmx=off", "x2apic=on"}; p.CPUModel != "host" || !slices.Equal(p.CPUFeatures, want) {
		t.Errorf("%s %v", p.CPUModel, p.CPUFeatures)
	}
	if want := []string{"intel_iommu=on", "iommu=pt"}; !slices.Equal(p.KernelArguments, want) {
		t.Errorf("%v", p.KernelArguments)
	}
	if s := setting(t, p, "host-threads"); s.Value != "8,24" {
		t.Errorf("%+v", s)
	}
	if s := setting(t, p, "topology"); s.Value != "2 sockets, 1 die each, 8 cores each, 2 threads each; 30 of 32 places have a vCPU" {
		t.Errorf("%+v", s)
	}
	if s := setting(t, p, "memory-nodes"); s.Expect != "10 20 / 20 10" {
		t.Errorf("%+v", s)
	}
}

func TestUntuned(t *testing.T) {
	t.Parallel()
	tuned, p := plan.Make(server(t), muster.VMOptions{}), plan.Make(server(t), muster.VMOptions{Untuned: true})
	if len(p.Lacks) > 0 || p.Tuned || p.Sockets*p.Dies*p.Threads != 1 || len(p.CPUs) != len(tuned.CPUs) || len(p.MemoryNodes) != 1 || p.PageSize != 0 || p.NIC.Queues != 1 || p.NIC.InterruptCPUs != nil {
		t.Fatalf("%+v", p)
	}
	if p.Memory != tuned.Memory || slices.ContainsFunc(p.CPUs, func(c muster.VMCPU) bool { return c.Host != nil }) {
		t.Errorf("%d and %d bytes, %+v", p.Memory, tuned.Memory, p.CPUs)
	}
	if tuned.NIC.Queues != 7 || !slices.Equal(tuned.NIC.InterruptCPUs, tuned.HostCPUs) {
		t.Errorf("%+v", tuned.NIC)
	}
}

// A slice's cores are near to each other and to the card.
func TestSlices(t *testing.T) {
	t.Parallel()
	h := server(t)
	for cores, want := range map[int]string{
		4: "8-15 24-31 [9 25 10 26 11 27 12 28]", 7: "", 8: "0-7 16-23 [0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23]", 14: "both",
	} {
		p := plan.Make(h, muster.VMOptions{Cores: cores, HostCores: new(1)})
		var list []int
		sockets := map[int]int{}
		for _, c := range p.CPUs {
			list = append(list, *c.Host)
			sockets[c.Socket]++
		}
		if len(p.Lacks) > 0 || len(list) != 2*cores {
			t.Fatalf("%d cores: %+v", cores, p)
		}
		if _, numbers, ok := strings.Cut(want, "["); ok && numbers != strings.Trim(fmt.Sprint(list), "[")+"" {
			t.Errorf("%d cores: %v", cores, list)
		}
		if want == "both" && (sockets[0] != 14 || sockets[1] != 14) {
			t.Errorf("%d cores: %v", cores, sockets)
		}
	}
	// One of a host that is shared has the memory of its cores' share, of their memory nodes.
	p := plan.Make(h, muster.VMOptions{Cores: 7, HostCores: new(2)})
	if len(p.MemoryNodes) != 1 || *p.MemoryNodes[0].Host != 1 || p.MemoryNodes[0].Memory < 118*gib {
		t.Errorf("%+v", p.MemoryNodes)
	}
	p = plan.Make(h, muster.VMOptions{Cores: 2, Memory: 10 * gib})
	if len(p.Lacks) > 0 || p.Memory != 10*gib {
		t.Errorf("%+v", p)
	}
	// A machine that is a slice already.
	top := h.Topology
	top.Packages = []muster.Package{{ID: 0, Nodes: []muster.MemoryNode{{ID: 0, Groups: []muster.CoreGroup{{Cores: [][]int{{2}, {3}}}}}}}}
	p = plan.Make(plan.Host{Topology: top, VM: h.VM, Slice: true, Memory: 4 * gib}, muster.VMOptions{})
	if len(p.Lacks) > 0 || len(p.CPUs) != 2 || p.Memory > 4*gib-128*mib || p.Memory < 3*gib || !slices.Equal(p.HostCPUs, []int{2, 3}) || !strings.Contains(setting(t, p, "host-threads").Reason, "no core is left over") {
		t.Errorf("%+v", p)
	}
}

func TestDevices(t *testing.T) {
	t.Parallel()
	h := server(t)
	p := plan.Make(h, muster.VMOptions{Devices: []string{"0000:c1:00.0"}})
	if len(p.Lacks) > 0 || len(p.Devices) != 2 || !p.Devices[0].Asked || p.Devices[1].Address != "0000:c1:00.1" || p.Devices[1].Asked || *p.Devices[0].MemoryNode != 1 {
		t.Errorf("%+v %+v", p.Devices, p.Lacks)
	}
	p = plan.Make(h, muster.VMOptions{Devices: []string{"0000:18:00.0"}})
	if !slices.Equal(reasons(p), []string{muster.LackVFGroup}) || !strings.Contains(p.Lacks[0].Text, "0000:18:01.0") {
		t.Errorf("%+v", p.Lacks)
	}
	if p = plan.Make(h, muster.VMOptions{Devices: []string{"0000:18:00.0", "0000:18:01.0"}}); len(p.Lacks) > 0 || len(p.Devices) != 2 || !p.Devices[1].Asked {
		t.Errorf("%+v", p)
	}
	if p = plan.Make(h, muster.VMOptions{Devices: []string{"0000:99:00.0"}}); !slices.Equal(reasons(p), []string{muster.LackDevice}) {
		t.Errorf("%+v", p.Lacks)
	}
	h.Slice, h.Memory = true, 64*gib
	if p = plan.Make(h, muster.VMOptions{Devices: []string{"0000:c1:00.0"}}); !slices.Equal(reasons(p), []string{muster.LackDevice}) {
		t.Errorf("%+v", p.Lacks)
	}
}

// A slice has the devices that are given to it, asked or not, and no others; then it cannot be saved.
func TestGivenDevices(t *testing.T) {
	t.Parallel()
	h := server(t)
	h.Slice, h.OwnBoot, h.Memory = true, false, 64*gib
	give := func(addresses ...string) {
		vm := *h.VM
		vm.Devices = slices.Clone(vm.Devices)
		for i, d := range vm.Devices {
			vm.Devices[i].Given = slices.Contains(addresses, d.Address)
		}
		h.VM = &vm
	}
	if p := plan.Make(h, muster.VMOptions{Save: true}); len(p.Lacks) > 0 || len(p.Devices) > 0 || p.Memlock > 0 {
		t.Errorf("%+v, lacks %+v", p.Devices, p.Lacks)
	}
	give("0000:c1:00.0", "0000:c1:00.1")
	for _, o := range []muster.VMOptions{{}, {Devices: []string{"0000:c1:00.1"}}} {
		p := plan.Make(h, o)
		if len(p.Lacks) > 0 || len(p.Devices) != 2 || !p.Devices[0].Asked || !p.Devices[1].Asked || *p.Devices[1].MemoryNode != 1 || p.Memlock <= p.Memory {
			t.Errorf("%+v, lacks %+v", p.Devices, p.Lacks)
		}
		if s := setting(t, p, "device:0000:c1:00.1"); !strings.Contains(s.Value, "IOMMU group") || !strings.Contains(s.Value, "memory node 1") || !strings.Contains(s.Reason, "--vm-device") {
			t.Errorf("%+v", s)
		}
	}
	if p := plan.Make(h, muster.VMOptions{Devices: []string{"0000:18:00.0"}}); !slices.Contains(reasons(p), muster.LackDevice) {
		t.Errorf("%+v", p.Lacks)
	}
	lacks := func(o muster.VMOptions) (list []string) {
		for _, l := range plan.Lacks(muster.Facts{CPUs: []int{0}, VMHost: h.VM}, o, false) {
			list = append(list, l.Reason)
		}
		return list
	}
	if got := lacks(muster.VMOptions{Save: true}); !slices.Equal(got, []string{muster.LackSave}) {
		t.Errorf("%v", got)
	}
	give("0000:c1:00.0")
	if got := lacks(muster.VMOptions{}); !slices.Equal(got, []string{muster.LackVFGroup}) {
		t.Errorf("%v", got)
	}
	h.VM.Remapping = false
	if got := lacks(muster.VMOptions{}); !slices.Contains(got, muster.LackIOMMU) {
		t.Errorf("%v", got)
	}
}

// What cannot be is said, all of it, each with a cure.
func TestRefusals(t *testing.T) {
	t.Parallel()
	good := server(t)
	change := func(f func(*plan.Host)) plan.Host {
		h := good
		vm := *good.VM
		vm.Devices, vm.MemoryNodes = slices.Clone(vm.Devices), slices.Clone(vm.MemoryNodes)
		h.VM = &vm
		f(&h)
		return h
	}
	odd := muster.Topology{Source: "x", Packages: []muster.Package{{Nodes: []muster.MemoryNode{{Memory: 16 * gib, Groups: []muster.CoreGroup{{Cores: [][]int{{0, 1}, {2, 3}, {4}, {5}}}}}}}}}
	large := muster.Topology{Source: "x", Packages: []muster.Package{{Nodes: []muster.MemoryNode{{Memory: 512 * gib, Groups: []muster.CoreGroup{{}}}}}}}
	for i := range 320 {
		large.Packages[0].Nodes[0].Groups[0].Cores = append(large.Packages[0].Nodes[0].Groups[0].Cores, []int{i})
	}
	for name, c := range map[string]struct {
		host plan.Host
		opt  muster.VMOptions
		want []string
	}{
		"options":       {good, muster.VMOptions{NIC: "x", Pages: "4KiB", CPU: "a,b", Devices: []string{"x"}, Cores: -1}, []string{"vm-option", "vm-option", "vm-option", "vm-option", "vm-option"}},
		"untuned pages": {good, muster.VMOptions{Untuned: true, Pages: "2MiB"}, []string{"vm-option"}},
		"save with vf":  {good, muster.VMOptions{Save: true, NIC: "vf"}, []string{"vm-save"}},
		"unknown":       {plan.Host{Topology: good.Topology}, muster.VMOptions{}, []string{"no-kvm"}},
		"no topology":   {plan.Host{VM: good.VM}, muster.VMOptions{}, []string{"vm-topology"}},
		"no kvm":        {change(func(h *plan.Host) { h.VM.KVM = false }), muster.VMOptions{}, []string{"no-kvm"}},
		"all at once": {change(func(h *plan.Host) { h.VM.KVM, h.VM.IOMMU, h.VM.Devices = false, false, nil }),
			muster.VMOptions{NIC: "vf", Cores: 99, Memory: 900 * gib}, []string{"no-kvm", "no-iommu", "no-vf", "vm-cores", "vm-memory"}},
		"unsafe":        {change(func(h *plan.Host) { h.VM.Remapping = false }), muster.VMOptions{NIC: "vf"}, []string{"no-iommu"}},
		"host cores":    {good, muster.VMOptions{HostCores: new(16)}, []string{"vm-cores"}},
		"cores":         {good, muster.VMOptions{Cores: 17}, []string{"vm-cores"}},
		"memory":        {good, muster.VMOptions{Cores: 4, Memory: 200 * gib}, []string{"vm-memory"}},
		"gigantic":      {good, muster.VMOptions{Pages: "1GiB"}, []string{"huge-pages"}},
		"odd":           {plan.Host{Topology: odd, VM: &muster.VMHost{KVM: true}}, muster.VMOptions{}, []string{"vm-topology"}},
		"odd, part":     {plan.Host{Topology: odd, VM: &muster.VMHost{KVM: true}}, muster.VMOptions{Cores: 2}, []string{}},
		"odd, untuned":  {plan.Host{Topology: odd, VM: &muster.VMHost{KVM: true}}, muster.VMOptions{Untuned: true}, []string{}},
		"large":         {plan.Host{Topology: large, VM: &muster.VMHost{KVM: true}}, muster.VMOptions{}, []string{"vm-cores"}},
		"small":         {change(func(h *plan.Host) { h.Slice, h.Memory = true, 200*mib }), muster.VMOptions{}, []string{"vm-memory"}},
		"no huge pages": {change(func(h *plan.Host) { h.VM.MemoryNodes[0].Pages, h.VM.MemoryNodes[1].Pages = nil, nil }), muster.VMOptions{}, []string{"huge-pages"}},
		"all shared": {change(func(h *plan.Host) {
			for i, d := range h.VM.Devices {
				if d.Functions != nil {
					h.VM.Devices[i].Functions = &muster.VirtualFunctions{Total: 8, Enabled: 2}
				}
			}
		}), muster.VMOptions{NIC: "vf"}, []string{"vf-group"}},
		"card given away": {change(func(h *plan.Host) {
			h.VM.Devices = slices.DeleteFunc(h.VM.Devices, func(d muster.PCIDevice) bool { return d.Driver == "ice" || d.PhysicalFunction != "" })
		}), muster.VMOptions{NIC: "vf", Devices: []string{"0000:41:00.0"}}, []string{"no-vf"}},
	} {
		p := plan.Make(c.host, c.opt)
		if !slices.Equal(reasons(p), c.want) {
			t.Errorf("%s: %+v, want %v", name, p.Lacks, c.want)
		}
		for _, l := range p.Lacks {
			if l.Text == "" || l.Cure == "" {
				t.Errorf("%s: %+v", name, l)
			}
		}
	}
	// A host that is booted for it lacks no more than its firmware does.
	off := change(func(h *plan.Host) { h.VM.KVM, h.VM.IOMMU, h.VM.Remapping, h.OwnBoot = false, false, false, true })
	if p := plan.Make(off, muster.VMOptions{NIC: "vf", Pages: "1GiB"}); len(p.Lacks) > 0 || p.Emulated || !slices.Equal(p.KernelArguments, []string{"intel_iommu=on", "iommu=pt", "hugepagesz=1G", "hugepages=0:122,1:122"}) {
		t.Errorf("%+v %v", p.Lacks, p.KernelArguments)
	}
	// One without KVM emulates if that is allowed, and says so.
	none := change(func(h *plan.Host) { h.VM.KVM = false })
	if p := plan.Make(none, muster.VMOptions{Emulate: true}); len(p.Lacks) > 0 || !p.Emulated || p.CPUModel != "Opteron_G3" || !strings.Contains(setting(t, p, "cpu").Reason, "no KVM") {
		t.Errorf("%+v", p)
	}
	if p := plan.Make(good, muster.VMOptions{Emulate: true}); p.Emulated {
		t.Error("emulated in spite of KVM")
	}
}

func TestSaving(t *testing.T) {
	t.Parallel()
	p := plan.Make(server(t), muster.VMOptions{Save: true})
	if len(p.Lacks) > 0 || !slices.Contains(p.CPUFeatures, "invtsc=off") || !slices.Contains(p.CPUFeatures, "migratable=on") || setting(t, p, "invtsc").Value != "off" {
		t.Errorf("%+v", p)
	}
	p = plan.Make(server(t), muster.VMOptions{Save: true, CPU: "Skylake-Server"})
	if p.CPUModel != "Skylake-Server" || !slices.Equal(p.CPUFeatures, []string{"invtsc=off", "vmx=off", "x2apic=on"}) {
		t.Errorf("%s %v", p.CPUModel, p.CPUFeatures)
	}
}

// Facts alone say who could carry what.
func TestLacks(t *testing.T) {
	t.Parallel()
	facts := func(tree string) muster.Facts {
		return muster.Facts{VMHost: host.Source{FS: hosttest.Tree(t, tree, nil)}.Facts()}
	}
	for _, c := range []struct {
		facts   muster.Facts
		opt     muster.VMOptions
		ownBoot bool
		want    string
	}{
		{facts(hosttest.TwoSockets), muster.VMOptions{NIC: "vf", Pages: "1GiB", Devices: []string{"0000:c1:00.0"}}, false, ""},
		{facts(hosttest.TwoSockets), muster.VMOptions{Devices: []string{"0000:18:00.0"}}, false, "vf-group"},
		{facts(hosttest.EmulatedIntel), muster.VMOptions{NIC: "vf"}, false, ""},
		{facts(hosttest.EmulatedAMD), muster.VMOptions{NIC: "vf"}, false, ""},
		{facts(hosttest.EmulatedAMD), muster.VMOptions{Pages: "1GiB"}, false, "huge-pages"},
		{facts(hosttest.Nothing), muster.VMOptions{NIC: "vf", Pages: "1GiB"}, false, "no-kvm no-iommu no-vf huge-pages"},
		{facts(hosttest.Nothing), muster.VMOptions{NIC: "vf", Pages: "1GiB"}, true, "no-kvm no-iommu no-vf huge-pages"},
		{facts(hosttest.Nothing), muster.VMOptions{Untuned: true, Emulate: true}, false, ""},
		{muster.Facts{}, muster.VMOptions{}, false, "no-kvm"},
	} {
		var list []string
		for _, l := range plan.Lacks(c.facts, c.opt, c.ownBoot) {
			list = append(list, l.Reason)
			if l.Text == "" || l.Cure == "" {
				t.Errorf("%+v", l)
			}
		}
		if got := strings.Join(list, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.opt, got, c.want)
		}
	}
}

func anyHost(t *rapid.T) plan.Host {
	n := func(what string, from, to int) int { return rapid.IntRange(from, to).Draw(t, what) }
	h := plan.Host{Topology: muster.Topology{Source: "x"}, VM: &muster.VMHost{KVM: n("kvm", 0, 4) > 0, Virtualization: rapid.SampledFrom([]string{"vmx", "svm"}).Draw(t, "v"), IOMMU: true, FirmwareIOMMU: true, Remapping: true}}
	thread, node := 0, 0
	threads := n("threads", 1, 2)
	var ids []int
	for pkg := range n("packages", 1, 4) {
		p := muster.Package{ID: pkg * n("gap", 1, 2)}
		if len(h.Topology.Packages) > 0 && p.ID <= h.Topology.Packages[len(h.Topology.Packages)-1].ID {
			p.ID = h.Topology.Packages[len(h.Topology.Packages)-1].ID + 1
		}
		for range n("nodes", 1, 2) {
			m := muster.MemoryNode{ID: node, Memory: int64(n("memory", 0, 64)) * gib / 2}
			for range n("groups", 0, 3) {
				g := muster.CoreGroup{Caches: []muster.Cache{{Level: n("level", 2, 3), Size: mib, Shared: 1, Count: 1}}}
				for range n("cores", 1, 4) {
					var c []int
					for range max(1, threads-n("odd", 0, 20)/20) {
						c = append(c, thread)
						thread++
					}
					g.Cores = append(g.Cores, c)
				}
				m.Groups = append(m.Groups, g)
			}
			ids = append(ids, node)
			h.VM.MemoryNodes = append(h.VM.MemoryNodes, muster.VMMemoryNode{ID: node, Memory: m.Memory, Pages: []muster.PagePool{{Size: 2 * mib}, {Size: gib, Total: 99, Free: 99}}})
			p.Nodes = append(p.Nodes, m)
			node++
		}
		h.Topology.Packages = append(h.Topology.Packages, p)
	}
	for i := range h.VM.MemoryNodes {
		for j := range ids {
			d := 10
			if i != j {
				d = n("distance", 9, 40)
			}
			h.VM.MemoryNodes[i].Distances = append(h.VM.MemoryNodes[i].Distances, d)
		}
	}
	if n("known", 0, 3) > 0 {
		h.VM.Devices = []muster.PCIDevice{{Address: "0000:41:00.0", Kind: muster.PCINetwork, Group: new(1), MemoryNode: new(n("card", 0, 3)), Functions: &muster.VirtualFunctions{Total: 8}}}
	}
	if n("slice", 0, 3) == 0 {
		h.Slice, h.Memory = true, int64(n("limit", 0, 16))*gib/2
	}
	return h
}

func anyOptions(t *rapid.T) muster.VMOptions {
	n := func(what string, from, to int) int { return rapid.IntRange(from, to).Draw(t, what) }
	o := muster.VMOptions{
		Cores: max(0, n("want", -10, 12)), Memory: max(0, int64(n("size", -8, 40))) * gib / 2, Untuned: n("tune", 0, 4) == 0, Save: n("save", 0, 3) == 0, Emulate: n("emulate", 0, 1) == 0,
		NIC: rapid.SampledFrom([]string{"", "virtio", "vf"}).Draw(t, "nic"), Pages: rapid.SampledFrom([]string{"", "", "2MiB", "1GiB"}).Draw(t, "pages"),
	}
	if n("keep", 0, 2) == 0 {
		o.HostCores = new(n("kept", 0, 3))
	}
	return o
}

// Whatever the machine is like: no hardware thread and no place twice, siblings together, no
// more memory of a node than it has, and a place in the virtual machine that says where the
// vCPU is on the host.
func TestPlansHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, o := anyHost(t), anyOptions(t)
		p := plan.Make(h, o)
		a, _ := json.Marshal(p)
		b, _ := json.Marshal(plan.Make(h, o))
		if string(a) != string(b) {
			t.Fatalf("\n%s\n%s", a, b)
		}
		for _, l := range p.Lacks {
			if l.Reason == "" || l.Text == "" || l.Cure == "" {
				t.Fatalf("%+v", l)
			}
		}
		for _, s := range p.Settings {
			if s.Name == "" || s.Value == "" || s.Reason == "" || s.Read == "" || s.Expect == "" {
				t.Fatalf("%+v", s)
			}
		}
		if len(p.CPUs) == 0 {
			if len(p.Lacks) == 0 {
				t.Fatal("no vCPU, and nothing lacks")
			}
			return
		}
		checkPlaces(t, h, p)
		checkMemory(t, h, o, p)
		if len(p.Lacks) > 0 {
			return
		}
		if args := plan.Arguments(p, plan.Attachment{Machine: "pc-q35-7.2"}); slices.ContainsFunc(args, func(s string) bool { return strings.Contains(s, "balloon") }) || len(args)%2 != 0 {
			t.Fatalf("%v", args)
		}
	})
}

func checkPlaces(t *rapid.T, h plan.Host, p muster.VMPlan) {
	type where struct{ pkg, node, core int }
	of := map[int]where{}
	core, threads := 0, map[int]int{}
	for _, pkg := range h.Topology.Packages {
		for _, n := range pkg.Nodes {
			for _, g := range n.Groups {
				for _, c := range g.Cores {
					for _, th := range c {
						of[th] = where{pkg.ID, n.ID, core}
					}
					threads[core] = len(c)
					core++
				}
			}
		}
	}
	places, used, mine := map[muster.VMCPU]bool{}, map[int]bool{}, map[int]int{}
	guestCore, guestSocket, guestNode := map[[3]int]int{}, map[int]int{}, map[int]int{}
	for _, c := range p.CPUs {
		place := muster.VMCPU{Socket: c.Socket, Die: c.Die, Core: c.Core, Thread: c.Thread}
		if places[place] || c.Socket >= p.Sockets || c.Die >= p.Dies || c.Core >= p.Cores || c.Thread >= p.Threads {
			t.Fatalf("place %+v in %+v", place, p)
		}
		places[place] = true
		if !p.Tuned {
			continue
		}
		w, ok := of[*c.Host]
		if !ok || used[*c.Host] {
			t.Fatalf("hardware thread %d", *c.Host)
		}
		used[*c.Host] = true
		mine[w.core]++
		at := [3]int{c.Socket, c.Die, c.Core}
		same := func(m map[int]int, k, v int) bool { old, ok := m[k]; m[k] = v; return !ok || old == v }
		if old, ok := guestCore[at]; ok && old != w.core || !same(guestSocket, c.Socket, w.pkg) || !same(guestNode, c.MemoryNode, w.node) {
			t.Fatalf("%+v is at %+v", c, w)
		}
		guestCore[at] = w.core
	}
	for c, n := range mine {
		if n != threads[c] {
			t.Fatalf("%d of %d threads of core %d", n, threads[c], c)
		}
	}
	if len(guestCore) != len(mine) {
		t.Fatalf("%d cores are shown as %d", len(mine), len(guestCore))
	}
	shared := false
	for _, c := range p.HostCPUs {
		if _, ok := of[c]; !ok {
			t.Fatalf("the host's thread %d", c)
		}
		shared = shared || used[c]
	}
	if len(p.HostCPUs) == 0 || p.Tuned && shared && len(p.HostCPUs) != len(used) {
		t.Fatalf("QEMU's own threads are on %v, vCPUs on %v", p.HostCPUs, used)
	}
}

func checkMemory(t *rapid.T, h plan.Host, o muster.VMOptions, p muster.VMPlan) {
	sum, total := int64(0), int64(0)
	has := map[int]int64{}
	for _, n := range h.VM.MemoryNodes {
		total += n.Memory
		has[n.ID] = n.Memory
	}
	if h.Slice {
		total = h.Memory
	}
	for i, n := range p.MemoryNodes {
		sum += n.Memory
		if n.ID != i || n.Memory < 0 || p.PageSize > 0 && n.Memory != n.Pages*p.PageSize {
			t.Fatalf("%+v", n)
		}
		if p.Tuned && (n.Memory > has[*n.Host] && !h.Slice || n.Distances != nil && len(n.Distances) != len(p.MemoryNodes)) {
			t.Fatalf("%+v of %d", n, has[*n.Host])
		}
	}
	if sum != p.Memory || p.Memory > total {
		t.Fatalf("%d in nodes, %d in all, of %d", sum, p.Memory, total)
	}
	if len(p.Lacks) > 0 {
		return
	}
	if least := (total-2*gib)*9/10 - 8*mib*int64(len(h.VM.MemoryNodes)); o.Cores == 0 && o.Memory == 0 && !h.Slice && p.Memory < least {
		t.Fatalf("%d of %d", p.Memory, total)
	}
	page := 2 * mib
	if o.Pages == "1GiB" {
		page = gib
	}
	if o.Memory > 0 && p.Memory != o.Memory/page*page {
		t.Fatalf("%d of %d asked", p.Memory, o.Memory)
	}
}

// Every reason is described.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operators/virtual-machines.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []string{muster.LackKVM, muster.LackIOMMU, muster.LackVF, muster.LackVFGroup, muster.LackHugePages, muster.LackCores, muster.LackMemory,
		muster.LackTopology, muster.LackDevice, muster.LackSave, muster.LackOption} {
		if !strings.Contains(string(text), "| `"+r+"` |") {
			t.Errorf("reason %s is not described", r)
		}
	}
}
