package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/errortest"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/vm/device"
	vmhost "github.com/muster-hpc/muster/vm/host"
	"github.com/muster-hpc/muster/vm/host/hosttest"
	"github.com/muster-hpc/muster/vm/pci"
	"github.com/muster-hpc/muster/vm/plan"
)

// Devices are read as they are written, and every fault of all of them is named.
func TestParseVMDevices(t *testing.T) {
	t.Parallel()
	got, err := ParseVMDevices([]string{"0000:C1:00.0,machine=local-02", "0000:41:00.0"})
	if err != nil || !slices.Equal(got, []VMDevice{{"0000:c1:00.0", "local-02"}, {"0000:41:00.0", ""}}) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = ParseVMDevices([]string{"", "c1:00.0", "0000:c1:00.0,x=1,machine=", "0000:c1:00.0,machine=local-01,machine=local-02"})
	var e *muster.Error
	if !errors.As(err, &e) || len(e.Problems) != 5 {
		t.Errorf("%v", err)
	}
}

func FuzzParseVMDevices(f *testing.F) {
	f.Add("0000:c1:00.0,machine=local-01")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseVMDevices([]string{text})
		if err == nil && (len(list) != 1 || strings.ContainsAny(list[0].Address, "/, ") || strings.Contains(string(list[0].Machine), "/")) {
			t.Errorf("%q: %+v", text, list)
		}
	})
}

func fourMachines(facts *muster.VMHost) *Provider {
	p := &Provider{machines: map[muster.MachineID]*machine{}, host: &host{cpus: []cpu{{id: 0, node: 0}, {id: 1, node: 0}, {id: 2, node: 1, socket: 1}, {id: 3, node: 1, socket: 1}}}}
	for i := range 4 {
		p.machines[machineID(i)] = &machine{id: machineID(i), index: i, facts: muster.Facts{CPUs: []int{i}, VMHost: facts}}
	}
	return p
}

// Each group of devices goes to one machine: as it is named, where it is, or near and with the fewest. What a machine
// knows of its host has its own devices and no others, and is planned with them.
func TestShareDevices(t *testing.T) {
	t.Parallel()
	node := func(n int) *int { return &n }
	var all []muster.PCIDevice
	var list []device.Device
	for i, at := range []struct {
		address string
		group   int
		node    *int
	}{{"0000:41:00.0", 1, node(1)}, {"0000:42:00.0", 2, node(1)}, {"0000:43:00.0", 3, node(1)}, {"0000:44:00.0", 4, nil}, {"0000:c1:00.0", 5, node(0)}, {"0000:c1:00.1", 5, node(0)}, {"0000:c2:00.0", 6, node(0)}} {
		all = append(all, muster.PCIDevice{Address: at.address, Kind: muster.PCIDisk, Group: new(at.group), MemoryNode: at.node})
		list = append(list, device.Device{Address: at.address, Group: at.group, ID: fmt.Sprint(i)})
	}
	facts := &muster.VMHost{KVM: true, IOMMU: true, Remapping: true, FirmwareIOMMU: true, Devices: all[:6]}
	p := fourMachines(facts)
	p.cfg.VMDevices = []VMDevice{{"0000:c1:00.1", "local-04"}}
	notes := map[muster.MachineID]*deviceNote{"local-02": {Devices: []device.Held{{Address: "0000:43:00.0"}}}, "local-09": {Devices: []device.Held{{Address: "0000:41:00.0"}}}}
	if problems := p.shareDevices(list, all, notes); len(problems) > 0 {
		t.Fatal(problems)
	}
	want := map[muster.MachineID][]string{
		"local-01": {"0000:44:00.0"}, "local-02": {"0000:43:00.0", "0000:c2:00.0"}, "local-03": {"0000:41:00.0"}, "local-04": {"0000:42:00.0", "0000:c1:00.0", "0000:c1:00.1"},
	}
	// c2 is near to local-01 and local-02, which have one each: the first.
	want["local-01"], want["local-02"] = append(want["local-01"], "0000:c2:00.0"), want["local-02"][:1]
	for id, m := range p.machines {
		var got []string
		for _, d := range m.devices {
			got = append(got, d.Address)
		}
		slices.Sort(got)
		if !slices.Equal(got, want[id]) {
			t.Errorf("%s has %v", id, got)
		}
		m.facts.VMHost = withDevices(m.facts.VMHost, all, m.devices)
		got = nil
		for _, d := range m.facts.VMHost.Given() {
			got = append(got, d.Address)
		}
		slices.Sort(got)
		if !slices.Equal(got, want[id]) {
			t.Errorf("the facts of %s have %v", id, got)
		}
	}
	if len(facts.Given()) > 0 {
		t.Error("the host's own facts were changed")
	}
	for _, l := range plan.Lacks(p.machines["local-04"].facts, muster.VMOptions{Save: true}, false) {
		if l.Reason != muster.LackSave && l.Reason != muster.LackHugePages {
			t.Errorf("%+v", l)
		}
	}
	p.cfg.VMDevices = append(p.cfg.VMDevices, VMDevice{"0000:c1:00.0", "local-01"})
	if problems := p.shareDevices(list, all, nil); len(problems) != 1 || !strings.Contains(problems[0].Message, "vf-group") {
		t.Errorf("%+v", problems)
	}
}

// A server does not start with devices that cannot be given, and says all that is wrong.
func TestOpenVMDevices(t *testing.T) {
	t.Parallel()
	p := fourMachines(&muster.VMHost{})
	p.dir = t.TempDir()
	p.devices = device.Host{Host: pci.Host{Dir: t.TempDir()}}
	p.cfg.VMDevices = []VMDevice{{"0000:99:00.0", "local-09"}}
	err := p.openVMDevices(t.Context(), vmhost.Source{FS: hosttest.Tree(t, hosttest.Nothing, nil)})
	if muster.ReasonOf(err) != muster.ReasonBadMachines || len(errortest.Listed(err)) < 4 {
		t.Fatal(err)
	}
	for _, name := range []string{"IOMMU", "vfio-pci", "0000:99:00.0", "local-09"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in %v", name, err)
		}
	}
}

// emptied is where a disk is pretended to be erased.
type emptied struct{ paths []string }

func (e *emptied) Empty(context.Context, string, int64) error { return nil }

func (e *emptied) Erase(_ context.Context, path string, _ int64) (string, error) {
	e.paths = append(e.paths, path)
	return "all read back, all zero", nil
}

// What one cluster had is of no other before it is clean; what is clean and not the machine's any more goes back to the host.
func TestDeviceNotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := filepath.Join(dir, "bus/pci/devices/0000:c1:00.0")
	for name, text := range map[string]string{"vendor": "0x10de", "device": "0x1", "subsystem_vendor": "0x1", "subsystem_device": "0x1", "class": "0x030200", "driver_override": "", "reset": ""} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := fourMachines(&muster.VMHost{})
	p.dir = t.TempDir()
	p.devices = device.Host{Host: pci.Host{Dir: dir}, Disks: &emptied{}}
	m := p.machines["local-02"]
	m.devices = []device.Device{{Address: "0000:c1:00.0", ID: "10de:1:1:1:030200"}}
	held := device.Held{Address: "0000:c1:00.0", ID: "10de:1:1:1:030200"}
	if err := p.saveDeviceNote(m.id, &deviceNote{Cluster: "c-1", Devices: []device.Held{held}}); err != nil {
		t.Fatal(err)
	}
	err := p.takeDevices(t.Context(), m, &provider.Boot{Cluster: "c-2"})
	if muster.ReasonOf(err) != muster.ReasonNotClean {
		t.Error(err)
	}
	if err := p.giveDevices(m.id); err != nil {
		t.Fatal(err)
	}
	steps, err := p.cleanDevices(t.Context(), m)
	if err != nil || len(steps) != 1 || !steps[0].OK || !strings.Contains(steps[0].What, "c1:00.0") {
		t.Errorf("%+v, %v", steps, err)
	}
	if n, err := p.loadDeviceNote(m.id); err != nil || len(n.Devices) != 1 || !n.Devices[0].Clean {
		t.Errorf("%+v, %v", n, err)
	}
	if steps, err := p.cleanDevices(t.Context(), m); err != nil || len(steps) > 0 {
		t.Errorf("%+v, %v", steps, err)
	}
	m.devices = nil // the server was started without it
	if err := p.recoverDevices(); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(p.dir); len(list) > 0 {
		t.Errorf("%v is left", list)
	}
	if err := p.saveDeviceNote("local-09", &deviceNote{Cluster: "c-1", Devices: []device.Held{held}}); err != nil {
		t.Fatal(err)
	}
	if err := p.recoverDevices(); err != nil || p.machines["local-09"] == nil || !p.machines["local-09"].gone {
		t.Errorf("a machine whose devices are not clean is not known: %v", err)
	}
}

// A device that is read back has vfio-pci, all of its group is the machine's, and its memory node is the planned one.
func TestReadDevice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(put func(name, text string), link func(name, to string))
		holds  bool
	}{
		"as planned": {func(func(string, string), func(string, string)) {}, true},
		"another driver": {func(_ func(string, string), link func(string, string)) {
			link("0000:c1:00.0/driver", "../drivers/nouveau")
		}, false},
		"another group": {func(_ func(string, string), link func(string, string)) {
			link("0000:c1:00.0/iommu_group", "../../groups/8")
		}, false},
		"company": {func(put func(string, string), _ func(string, string)) {
			put("../../groups/7/devices/0000:c1:00.9", "")
			put("0000:c1:00.9/class", "0x040300")
		}, false},
		"another node": {func(put func(string, string), _ func(string, string)) { put("0000:c1:00.0/numa_node", "0") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "a")
			path := func(name string) string { return filepath.Join(dir, "bus/pci/devices", name) }
			put := func(name, text string) {
				if err := os.MkdirAll(filepath.Dir(path(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path(name), []byte(text+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			link := func(name, to string) {
				_ = os.Remove(path(name))
				if err := os.Symlink(to, path(name)); err != nil {
					t.Fatal(err)
				}
			}
			put("0000:c1:00.0/class", "0x030200")
			put("0000:c1:00.0/numa_node", "1")
			put("0000:c0:01.0/class", "0x060400")
			for _, member := range []string{"7/devices/0000:c1:00.0", "7/devices/0000:c0:01.0", "8/devices/0000:c1:00.0"} {
				put("../../groups/"+member, "")
			}
			link("0000:c1:00.0/driver", "../drivers/vfio-pci")
			link("0000:c1:00.0/iommu_group", "../../../groups/7")
			c.change(put, func(name, to string) { link(name, strings.Replace(to, "../../groups", "../../../groups", 1)) })
			d := muster.VMPlanDevice{Address: "0000:c1:00.0", Group: new(7), Asked: true, MemoryNode: new(0)}
			r := &vmReading{plan: &muster.VMPlan{MemoryNodes: []muster.VMNode{{ID: 0, Host: new(1)}}, Devices: []muster.VMPlanDevice{d},
				Settings: []muster.VMSetting{{Name: "device:0000:c1:00.0", Value: "planned"}}}}
			r.device(pci.Host{Dir: dir}, d)
			if len(r.out) != 1 || r.out[0].Holds != c.holds || r.out[0].Name != "device:0000:c1:00.0" || r.out[0].Value != "planned" || (r.out[0].Cure != "") == c.holds {
				t.Errorf("%+v", r.out)
			}
		})
	}
}
