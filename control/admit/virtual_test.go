package admit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/place"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/wire"
)

// vmSite has slices of a host with QEMU, and bare machines.
func vmSite() muster.Providers {
	return muster.Providers{
		"local": {SharesHost: true, Fabric: "local", VM: &muster.Capabilities{OwnKernel: true, SharesHost: true, Fabric: "local"}},
		"metal": {OwnKernel: true, RootInMemory: true, Fabric: "metal"},
	}
}

func machine(id, provider string) muster.Machine {
	return muster.Machine{ID: muster.MachineID(id), Provider: provider, Phase: muster.MachineFree, Facts: muster.Facts{Architecture: "amd64", Cores: 4, Memory: 8 << 30, Class: "a"}}
}

func slice(id string, h *muster.VMHost) muster.Machine {
	m := machine(id, "local")
	m.Facts.CPUs, m.Facts.VMHost, m.Facts.Memory = []int{0}, h, 1<<30
	return m
}

// emulatingHost has neither KVM nor anything to give away.
func emulatingHost() *muster.VMHost {
	return &muster.VMHost{MemoryNodes: []muster.VMMemoryNode{{Pages: []muster.PagePool{{Size: 2 << 20}}}}}
}

// Only a request whose provider is vm, and no pattern that matches it, and nothing else that is said, gets a
// virtual machine; and then nothing but machines that can be booted so.
func TestNobodyElseGetsVirtualMachines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		providers := []string{"", "*", "v*", "?m", "vm", "local", "metal", "VM", "vm*"}
		r := wire.Request{
			Name: "c", Nodes: rapid.IntRange(1, 3).Draw(t, "nodes"), Provider: rapid.SampledFrom(providers).Draw(t, "provider"),
			Machine: wire.MachineConstraints{Provider: rapid.SampledFrom(providers).Draw(t, "machine.provider")},
			VM: wire.VMWish{
				Tune: rapid.SampledFrom([]string{"", "on", "off"}).Draw(t, "tune"), NIC: rapid.SampledFrom([]string{"", "virtio", "vf"}).Draw(t, "nic"),
				Pages: rapid.SampledFrom([]string{"", "2MiB", "1GiB"}).Draw(t, "pages"), Emulate: rapid.SampledFrom([]string{"", "on", "off"}).Draw(t, "emulate"),
			},
			Head: rapid.SampledFrom([]string{"", "shared"}).Draw(t, "head"),
		}
		s, problems := spec.Validate(r, spec.Defaults{Users: []string{"alice"}, Project: "p"})
		if len(problems) > 0 {
			return
		}
		named := r.Provider == muster.ProviderVM || r.Machine.Provider == muster.ProviderVM
		if (s.VM != nil) != named {
			t.Fatalf("%+v gets %+v", r, s.VM)
		}
		snap := admit.Snapshot{Providers: vmSite()}
		for i := range 4 {
			snap.Machines = append(snap.Machines, slice(fmt.Sprint("s", i), emulatingHost()), machine(fmt.Sprint("m", i), "metal"))
		}
		a := admit.Answer("c-1", s, nil, snap, place.Planner{})
		if a.Plan == nil {
			return
		}
		for _, seat := range a.Plan.Assign {
			at := slices.IndexFunc(snap.Machines, func(m muster.Machine) bool { return m.ID == seat.Machine })
			if s.VM != nil && snap.Machines[at].Provider != "local" {
				t.Fatalf("%+v: a virtual machine on %s", r, seat.Machine)
			}
		}
	})
}

// What a host lacks is counted under its own reason; without KVM it emulates and says so.
func TestVirtualMachinesLack(t *testing.T) {
	t.Parallel()
	with := func(change func(*muster.VMHost)) *muster.VMHost {
		h := emulatingHost()
		change(h)
		return h
	}
	iommu := func(h *muster.VMHost) { h.IOMMU, h.FirmwareIOMMU, h.Remapping = true, true, true }
	for name, c := range map[string]struct {
		host *muster.VMHost
		opt  muster.VMOptions
		want string
	}{
		"emulated":    {emulatingHost(), muster.VMOptions{Emulate: true}, ""},
		"no KVM":      {emulatingHost(), muster.VMOptions{}, admit.ReasonNoKVM},
		"KVM":         {with(func(h *muster.VMHost) { h.KVM = true }), muster.VMOptions{}, ""},
		"no IOMMU":    {emulatingHost(), muster.VMOptions{Emulate: true, NIC: muster.VMNICFunction}, admit.ReasonNoIOMMU},
		"no function": {with(iommu), muster.VMOptions{Emulate: true, NIC: muster.VMNICFunction}, admit.ReasonNoVF},
		"of a slice": {with(func(h *muster.VMHost) {
			iommu(h)
			h.Devices = []muster.PCIDevice{{Kind: muster.PCINetwork, Functions: &muster.VirtualFunctions{Total: 4}}}
		}), muster.VMOptions{Emulate: true, NIC: muster.VMNICFunction}, admit.ReasonNoVF},
		"given": {with(func(h *muster.VMHost) {
			iommu(h)
			h.Devices = []muster.PCIDevice{{Kind: muster.PCINetwork, PhysicalFunction: "0000:41:00.0"}}
		}), muster.VMOptions{Emulate: true, NIC: muster.VMNICFunction}, ""},
		"of one group": {with(func(h *muster.VMHost) {
			iommu(h)
			h.Devices = []muster.PCIDevice{{Kind: muster.PCINetwork, Group: new(1), Functions: &muster.VirtualFunctions{Total: 4, Enabled: 4}}}
		}), muster.VMOptions{Emulate: true, NIC: muster.VMNICFunction}, admit.ReasonVFGroup},
		"no large page": {emulatingHost(), muster.VMOptions{Emulate: true, Pages: muster.VMPages1GiB}, admit.ReasonHugePages},
	} {
		s := muster.Spec{Name: "c", Nodes: 1, Min: 1, Head: muster.HeadShared, Placement: muster.PlaceAny, VM: &c.opt, Machine: muster.Constraints{Provider: muster.ProviderVM}}
		site := admit.Snapshot{Providers: vmSite(), Machines: []muster.Machine{slice("s1", c.host), machine("m1", "metal")}}
		if c.want == admit.ReasonVFGroup { // those of a slice are listed only where they are alone
			site.Machines[0].Facts.CPUs = nil
		}
		a := admit.Answer("c-1", s, nil, site, place.Planner{})
		got := ""
		for _, r := range a.Rejections {
			if r.Reason != admit.ReasonProvider {
				got = r.Reason
			} else if r.Count != 1 || r.Sample[0] != "m1" {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if got != c.want || (a.Plan != nil) != (c.want == "") {
			t.Errorf("%s: %q, not %q; plan %v", name, got, c.want, a.Plan)
		}
		if c.opt.NIC == muster.VMNICFunction && a.Plan == nil && (len(a.Change) != 1 || !strings.HasPrefix(a.Change[0], "ask for vm.nic: virtio")) {
			t.Errorf("%s: one wish is behind it: %q", name, a.Change)
		}
		if said := len(a.Notices) > 0; a.Plan != nil && said == c.host.KVM {
			t.Errorf("%s: notices %q", name, a.Notices)
		}
	}
	// A virtual machine's memory is less than its machine's, and it has no disk of its host's; an image without a kernel is
	// none for it.
	opt := &muster.VMOptions{Emulate: true}
	snap := admit.Snapshot{Providers: vmSite(), Machines: []muster.Machine{slice("s1", emulatingHost())}}
	snap.Machines[0].Facts.Disk = 1 << 30
	ask := func(change func(*muster.Spec), image *muster.Image) string {
		s := muster.Spec{Name: "c", Nodes: 1, Min: 1, Head: muster.HeadShared, Placement: muster.PlaceAny, VM: opt, Machine: muster.Constraints{Provider: muster.ProviderVM}}
		change(&s)
		if a := admit.Answer("c-1", s, image, snap, place.Planner{}); len(a.Rejections) > 0 {
			return a.Rejections[0].Reason
		}
		return ""
	}
	least := muster.Quantity{Op: muster.AtLeast, Value: 1 << 30}
	for want, got := range map[string]string{
		admit.ReasonMemory:      ask(func(s *muster.Spec) { s.Machine.Memory = least }, nil),
		admit.ReasonDisk:        ask(func(s *muster.Spec) { s.Machine.Disk = least }, nil),
		admit.ReasonImageKernel: ask(func(*muster.Spec) {}, &muster.Image{ID: "i"}),
		"":                      ask(func(*muster.Spec) {}, &muster.Image{ID: "i", Kernel: "6.12", Modaliases: []string{"virtio:*"}}),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// A cluster that is to be saved gets no machine whose virtual machine has devices of the host; any other may.
func TestSavedWithoutDevices(t *testing.T) {
	t.Parallel()
	with := emulatingHost()
	with.IOMMU, with.FirmwareIOMMU, with.Remapping = true, true, true
	with.Devices = []muster.PCIDevice{{Address: "0000:41:00.0", Kind: muster.PCIDisk, Group: new(1), Given: true}}
	snap := admit.Snapshot{Providers: vmSite(), Machines: []muster.Machine{slice("s1", with), slice("s2", emulatingHost())}}
	saved := muster.Spec{Name: "c", Nodes: 1, Min: 1, Head: muster.HeadShared, Placement: muster.PlaceAny, VM: &muster.VMOptions{Emulate: true}, Machine: muster.Constraints{Provider: muster.ProviderVM}, OnPause: muster.PauseSave}
	any := saved
	any.OnPause = muster.PauseWait
	for nodes, want := range map[int][2]bool{1: {true, true}, 2: {false, true}} {
		saved.Nodes, saved.Min, any.Nodes, any.Min = nodes, nodes, nodes, nodes
		for i, s := range []muster.Spec{saved, any} {
			a := admit.Answer("c-1", s, nil, snap, place.Planner{})
			if (a.Plan != nil) != want[i] {
				t.Errorf("%d nodes, on_pause %s: %+v", nodes, s.OnPause, a)
			}
			rejected := slices.ContainsFunc(a.Rejections, func(r muster.Rejection) bool { return r.Reason == admit.ReasonVMSave && r.Sample[0] == "s1" })
			if rejected != (s.OnPause == muster.PauseSave) {
				t.Errorf("%d nodes, on_pause %s: rejections %+v", nodes, s.OnPause, a.Rejections)
			}
		}
	}
	if saved.VM.Save {
		t.Error("the request was changed")
	}
}
