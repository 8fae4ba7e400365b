package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/host"
	"github.com/muster-hpc/muster/vm/host/hosttest"
)

func source(t *testing.T, tree string, changes map[string]string) host.Source {
	t.Helper()
	return host.Source{
		FS:   hosttest.Tree(t, tree, changes),
		QEMU: func(context.Context) (string, error) { return "QEMU emulator version 7.2.22 (Debian 1:7.2)", nil },
	}
}

func device(t *testing.T, h muster.VMHost, address string) muster.PCIDevice {
	t.Helper()
	i := slices.IndexFunc(h.Devices, func(d muster.PCIDevice) bool { return d.Address == address })
	if i < 0 {
		t.Fatalf("no %s in %+v", address, h.Devices)
	}
	return h.Devices[i]
}

func TestReadTwoSockets(t *testing.T) {
	t.Parallel()
	s := source(t, hosttest.TwoSockets, nil)
	h := s.Read()
	if h.Virtualization != "vmx" || !h.KVM || h.Guest || !h.IOMMU || !h.FirmwareIOMMU || !h.Remapping || !h.FirmwareRemapping {
		t.Errorf("%+v", h)
	}
	if len(h.MemoryNodes) != 2 || h.MemoryNodes[1].Memory != 132088192<<10 || !slices.Equal(h.MemoryNodes[1].Distances, []int{20, 10}) ||
		!slices.Equal(h.MemoryNodes[1].Pages, []muster.PagePool{{Size: 2 << 20, Total: 2048, Free: 1536}, {Size: 1 << 30}}) {
		t.Errorf("%+v", h.MemoryNodes)
	}
	card := device(t, h, "0000:41:00.0")
	if card.Kind != muster.PCINetwork || card.Name != "enp65s0f0np0" || card.Driver != "mlx5_core" || *card.MemoryNode != 1 || *card.Group != 21 || *card.Functions != (muster.VirtualFunctions{Total: 8, Enabled: 4, Alone: 4}) {
		t.Errorf("%+v %+v", card, card.Functions)
	}
	if v := device(t, h, "0000:41:00.2"); v.PhysicalFunction != "0000:41:00.0" || v.Driver != "vfio-pci" || *v.Group != 30 {
		t.Errorf("%+v", v)
	}
	if d := device(t, h, "0000:c1:00.0"); d.Kind != muster.PCIAccelerator {
		t.Errorf("%+v", d)
	}
	top := s.Topology()
	if top == nil || len(top.Packages) != 2 || top.Cores() != 16 || len(top.Threads()) != 32 {
		t.Fatalf("%+v", top)
	}
	g := top.Packages[1].Nodes[0].Groups[0]
	if top.Packages[1].Nodes[0].ID != 1 || len(g.Cores) != 8 || !slices.Equal(g.Cores[0], []int{8, 24}) ||
		g.Caches[0] != (muster.Cache{Level: 3, Size: 12 << 20, Shared: 16, Count: 1}) || len(g.Caches) != 3 {
		t.Errorf("%+v", g)
	}

	// What is on record is short: bridges, virtual functions and what nobody would give away are
	// left out, and what stands in a group with a card is not.
	f := s.Facts()
	var list []string
	for _, d := range f.Devices {
		list = append(list, d.Address)
	}
	if want := []string{"0000:17:00.0", "0000:17:00.1", "0000:18:00.0", "0000:18:01.0", "0000:41:00.0", "0000:c1:00.0", "0000:c1:00.1"}; !slices.Equal(list, want) {
		t.Errorf("%v", list)
	}
}

func TestReadOthers(t *testing.T) {
	t.Parallel()
	none := source(t, hosttest.Nothing, nil).Read()
	if none.Virtualization != "" || none.KVM || none.IOMMU || none.FirmwareIOMMU || none.Remapping || none.Devices[0].Group != nil {
		t.Errorf("%+v", none)
	}
	intel := source(t, hosttest.EmulatedIntel, nil).Read()
	if intel.Virtualization != "svm" || !intel.Guest || !intel.IOMMU || !intel.Remapping || len(intel.MemoryNodes) != 2 {
		t.Errorf("%+v", intel)
	}
	if d := device(t, intel, "0000:41:00.0"); *d.Functions != (muster.VirtualFunctions{Total: 7, Enabled: 2, Alone: 2}) || *d.MemoryNode != 1 {
		t.Errorf("%+v %+v", d, d.Functions)
	}
	amd := source(t, hosttest.EmulatedAMD, nil).Read()
	if !amd.FirmwareIOMMU || !amd.FirmwareRemapping || device(t, amd, "0000:01:00.0").MemoryNode != nil {
		t.Errorf("%+v", amd)
	}
	// A device of KVM on a processor that has nothing for it is no KVM.
	if source(t, hosttest.Nothing, map[string]string{"dev/kvm": "x"}).Read().KVM {
		t.Error("KVM by its device alone")
	}
	// A kernel without memory nodes has one.
	one := source(t, hosttest.TwoSockets, map[string]string{"sys/devices/system/node": ""}).Read()
	if len(one.MemoryNodes) != 1 || one.MemoryNodes[0].Memory != 263825792<<10 {
		t.Errorf("%+v", one.MemoryNodes)
	}
}

func found(t *testing.T, s host.Source, name string) host.Finding {
	t.Helper()
	list := s.Check(t.Context())
	i := slices.IndexFunc(list, func(f host.Finding) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no %s in %+v", name, list)
	}
	return list[i]
}

// Everything on the good host is good but what it lacks indeed; on the other nothing is
// left unsaid.
func TestCheckGood(t *testing.T) {
	t.Parallel()
	s := source(t, hosttest.TwoSockets, nil)
	s.Firmware = func(name string) string { return map[string]string{"enp65s0f0np0": "22.41.1000 (MT_0000000359)"}[name] }
	s.Executes = func(context.Context) bool { return true }
	bad := []string{}
	for _, f := range s.Check(t.Context()) {
		if !f.OK {
			bad = append(bad, f.Name)
		}
		if f.Text == "" || f.OK != (f.Fix == "") {
			t.Errorf("%+v", f)
		}
	}
	if want := []string{"iommu-groups", "vf:eno1", "vf:eno2"}; !slices.Equal(bad, want) {
		t.Errorf("%v", bad)
	}
	if f := found(t, s, "vf:enp65s0f0np0"); f.Text != "0000:41:00.0 (mlx5_core, firmware 22.41.1000 (MT_0000000359), memory node 1) has 4 of 8 virtual functions enabled: 3 with driver vfio-pci" {
		t.Errorf("%+v", f)
	}
	if f := found(t, s, "vf:eno1"); !strings.Contains(f.Fix, "echo 8 > /sys/bus/pci/devices/0000:17:00.0/sriov_numvfs") {
		t.Errorf("%+v", f)
	}
	if f := found(t, s, "iommu-groups"); !strings.Contains(f.Text, "group 13 holds 0000:18:00.0 (nvme), 0000:18:01.0 (ahci)") || !strings.Contains(f.Fix, "ACS") {
		t.Errorf("%+v", f)
	}
	if f := found(t, s, "huge-pages:node1"); f.Text != "1536 of 2048 of 2 MiB free, 0 of 0 of 1 GiB free" {
		t.Errorf("%+v", f)
	}
	s.Firmware = nil // the kernel knows it of cards with RDMA
	if f := found(t, s, "vf:enp65s0f0np0"); !strings.Contains(f.Text, "firmware 22.41.1000,") {
		t.Errorf("%+v", f)
	}
}

func TestCheckNothing(t *testing.T) {
	t.Parallel()
	s := source(t, hosttest.Nothing, nil)
	s.QEMU = func(context.Context) (string, error) { return "", errors.New("not found") }
	s.Volumes = func() error { return errors.New("not found") }
	for name, want := range map[string]string{
		"virtualization":         "in firmware setup: enable Intel VT-x",
		"kvm":                    "modprobe kvm_intel",
		"qemu":                   "apt-get install qemu-system-x86",
		"volumes":                "apt-get install nfs-ganesha nfs-ganesha-vfs",
		"iommu":                  "in firmware setup: enable Intel VT-d",
		"vfio":                   "modprobe vfio-pci",
		"vf:eno1":                "in firmware setup: enable SR-IOV",
		"vf:ens2":                "mlxconfig -d 0000:02:00.0 set SRIOV_EN=1 NUM_OF_VFS=8",
		"huge-pages:node0":       "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
		"memlock":                "LimitMEMLOCK=infinity",
		"ksm":                    "echo 2 > /sys/kernel/mm/ksm/run",
		"transparent-huge-pages": "echo madvise > ",
	} {
		if f := found(t, s, name); f.OK || !strings.Contains(f.Fix, want) {
			t.Errorf("%+v, want %q", f, want)
		}
	}
}

// Each thing that can be off has a cure of its own.
func TestCheckCures(t *testing.T) {
	t.Parallel()
	dmarWithout := "hex " + "444d4152" + strings.Repeat("00", 33) + "00"
	optOut := "hex " + "444d4152" + strings.Repeat("00", 33) + "03"
	noIOMMU := map[string]string{"sys/class/iommu": "", "proc/interrupts": ""}
	with := func(base map[string]string, more ...string) map[string]string {
		m := map[string]string{}
		for k, v := range base {
			m[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for _, c := range []struct {
		tree, name, want string
		changes          map[string]string
	}{
		{hosttest.TwoSockets, "iommu", "kernel arguments: intel_iommu=on iommu=pt", noIOMMU},
		{hosttest.TwoSockets, "iommu", "intel_iommu=off away", with(noIOMMU, "proc/cmdline", "quiet intel_iommu=off\n")},
		{hosttest.EmulatedAMD, "iommu", "kernel arguments: iommu=pt", noIOMMU},
		{hosttest.TwoSockets, "interrupt-remapping", "see the check iommu", noIOMMU},
		{hosttest.TwoSockets, "interrupt-remapping", "enable interrupt remapping", map[string]string{"proc/interrupts": "", "sys/firmware/acpi/tables/DMAR": dmarWithout}},
		{hosttest.TwoSockets, "interrupt-remapping", "enable x2APIC", map[string]string{"proc/interrupts": "", "sys/firmware/acpi/tables/DMAR": optOut}},
		{hosttest.TwoSockets, "interrupt-remapping", "intremap=off away", map[string]string{"proc/interrupts": "", "proc/cmdline": "intel_iommu=on intremap=off\n"}},
		{hosttest.TwoSockets, "interrupt-remapping", "CONFIG_IRQ_REMAP", map[string]string{"proc/interrupts": ""}},
		{hosttest.TwoSockets, "unsafe-interrupts", "take allow_unsafe_interrupts=1 out", map[string]string{"sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts": "Y\n"}},
		{hosttest.EmulatedIntel, "iommu", "-device intel-iommu,intremap=on", map[string]string{"sys/class/iommu": "", "sys/firmware/acpi/tables/DMAR": ""}},
		{hosttest.TwoSockets, "kvm", "modprobe kvm_intel", map[string]string{"dev/kvm": "", "sys/module/kvm_intel": ""}},
		{hosttest.TwoSockets, "kvm", "dmesg", map[string]string{"dev/kvm": ""}},
		{hosttest.EmulatedIntel, "virtualization", "nested=1", map[string]string{"proc/cpuinfo": "processor : 0\nvendor_id : GenuineIntel\nflags : lm hypervisor\n"}},
		{hosttest.TwoSockets, "virtualization", "use a host", map[string]string{"proc/cpuinfo": "processor : 0\n", "dev/kvm": ""}},
		{hosttest.TwoSockets, "nested-paging", "options kvm_intel ept=1", map[string]string{"sys/module/kvm_intel/parameters/ept": "N\n"}},
		{hosttest.TwoSockets, "huge-pages:node0", "hugepagesz=1G hugepages=0:121", map[string]string{"sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "0\n"}},
	} {
		if f := found(t, source(t, c.tree, c.changes), c.name); f.OK || !strings.Contains(f.Fix, c.want) {
			t.Errorf("%s of %s: %+v, want %q", c.name, c.tree, f, c.want)
		}
	}
	// Who may raise the limit lacks nothing.
	if f := found(t, source(t, hosttest.Nothing, map[string]string{"proc/self/status": "CapEff:\t0000000001000000\n"}), "memlock"); !f.OK {
		t.Errorf("%+v", f)
	}
	// Two virtual functions in one group go to one virtual machine.
	s := source(t, hosttest.TwoSockets, map[string]string{"sys/devices/pci0000:40/0000:40:01.0/0000:41:00.3/iommu_group": "link ../../../../kernel/iommu_groups/30"})
	if f := found(t, s, "vf:enp65s0f0np0"); f.OK || !strings.Contains(f.Text, "only 2 in an IOMMU group of their own") {
		t.Errorf("%+v", f)
	}
	s.Executes = func(context.Context) bool { return false }
	if f := found(t, s, "kvm"); f.OK || !f.Needed {
		t.Errorf("%+v", f)
	}
	s.QEMU = func(context.Context) (string, error) { return "QEMU emulator version 5.2.0", nil }
	if f := found(t, s, "qemu"); f.OK || !f.Needed {
		t.Errorf("%+v", f)
	}
	if f := found(t, source(t, hosttest.EmulatedAMD, nil), "iommu"); !f.OK || f.Text != "on: ivhd0, domains of type DMA" && f.Text != "on: ivhd0, domains of type identity" {
		t.Errorf("%+v", f)
	}
}

// No cure lets a virtual machine send interrupts to the host, nor cuts groups apart that
// the hardware does not.
func TestCuresAreSafe(t *testing.T) {
	t.Parallel()
	for tree, changes := range map[string]map[string]string{
		hosttest.TwoSockets: {"proc/interrupts": ""}, hosttest.Nothing: nil, hosttest.EmulatedIntel: {"sys/class/iommu": ""}, hosttest.EmulatedAMD: {"sys/firmware": ""},
	} {
		for _, f := range source(t, tree, changes).Check(t.Context()) {
			for _, never := range []string{"allow_unsafe_interrupts=1 >", "allow_unsafe_interrupts=Y", "pcie_acs_override", "enable_unsafe", "no-iommu"} {
				if strings.Contains(f.Fix, never) {
					t.Errorf("%+v", f)
				}
			}
		}
	}
}
