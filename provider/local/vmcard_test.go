package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/function"
	vmhost "github.com/muster-hpc/muster/vm/host"
	"github.com/muster-hpc/muster/vm/host/hosttest"
	"github.com/muster-hpc/muster/vm/plan"
)

// A card is read as it is written, and every fault is named.
func TestParseVMCard(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]VMCard{
		"ens5,vlans=100-199":               {Name: "ens5", FirstVLAN: 100, LastVLAN: 199},
		"enp65s0f0np0,functions=4,vlans=7": {Name: "enp65s0f0np0", Functions: 4, FirstVLAN: 7, LastVLAN: 7},
	} {
		if got, err := ParseVMCard(text); got != want || err != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, names := range map[string]string{
		"": "interface vlans", "ens5": "vlans", "ens5,vlans=0-5": "vlans", "ens5,vlans=9-5": "vlans", "ens5,vlans=1-4095": "vlans", "../x,functions=0,x=1": "interface functions x vlans",
		"ens5,vlans=1-5,vlans=6": "twice", "ens5,vlans=1-5,functions=-1": "functions", "a=b,vlans=1-2": "interface",
	} {
		got, err := ParseVMCard(text)
		if err == nil || got != (VMCard{}) {
			t.Errorf("%q: %+v", text, got)
			continue
		}
		for name := range strings.FieldsSeq(names) {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q: no %q in %v", text, name, err)
			}
		}
	}
}

func FuzzParseVMCard(f *testing.F) {
	f.Add("ens5,vlans=100-199,functions=4")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseVMCard(text)
		if err == nil && (c.Name == "" || strings.ContainsAny(c.Name, "/, ") || c.FirstVLAN < 1 || c.LastVLAN < c.FirstVLAN || c.LastVLAN > 4094 || c.Functions < 0) {
			t.Errorf("%q: %+v", text, c)
		}
	})
}

// Machines near to the card have its functions first. What each knows of its host has its own function and no other, and is
// planned with it.
func TestShareFunctions(t *testing.T) {
	t.Parallel()
	source := vmhost.Source{FS: hosttest.Tree(t, hosttest.EmulatedIntel, nil)}
	all, facts := source.Read().Devices, source.Facts()
	const card = "0000:41:00.0" // in memory node 1
	p := &Provider{card: &function.Card{Name: "ens5", Address: card}, machines: map[muster.MachineID]*machine{},
		host: &host{cpus: []cpu{{id: 0, node: 0}, {id: 1, node: 0}, {id: 2, node: 1, socket: 1}, {id: 3, node: 1, socket: 1}}}}
	for i := range 4 {
		p.machines[machineID(i)] = &machine{id: machineID(i), index: i, facts: muster.Facts{CPUs: []int{i}, VMHost: facts}}
	}
	list := []function.Function{{Card: "ens5", Index: 0, Address: "0000:41:10.0"}, {Card: "ens5", Index: 1, Address: "0000:41:10.2"}, {Card: "ens5", Index: 2, Address: "0000:41:10.4"}}
	p.shareFunctions(list, all)
	got := map[muster.MachineID]string{}
	for id, m := range p.machines {
		if m.function != nil {
			got[id] = m.function.Address
		}
	}
	if len(got) != 3 || got["local-03"] != "0000:41:10.0" || got["local-04"] != "0000:41:10.2" || got["local-01"] != "0000:41:10.4" {
		t.Errorf("%v", got)
	}
	o := muster.VMOptions{NIC: muster.VMNICFunction, Emulate: true}
	for id, want := range map[muster.MachineID]string{"local-02": muster.LackVF, "local-03": ""} {
		m := p.machines[id]
		lack := ""
		for _, l := range plan.Lacks(m.facts, o, false) {
			lack += l.Reason
		}
		if lack != want {
			t.Errorf("%s lacks %q, not %q", id, lack, want)
		}
	}
	m := p.machines["local-04"]
	pl := plan.Make(plan.Host{Topology: p.host.within(source.Topology(), []int{2, 3}), VM: m.facts.VMHost, Slice: true, Memory: 1 << 30, Ordinary: true}, o)
	if len(pl.Lacks) > 0 || pl.NIC.Card != card || pl.NIC.Function != "0000:41:10.2" || pl.NIC.MemoryNode == nil || *pl.NIC.MemoryNode != 0 || pl.Memlock <= pl.Memory {
		t.Errorf("%+v, lacks %+v", pl.NIC, pl.Lacks)
	}
}

// Each cluster's network has a VLAN of its own, and none where there are no more.
func TestVLANOf(t *testing.T) {
	t.Parallel()
	p := &Provider{cfg: Config{VMCard: &VMCard{Name: "ens5", FirstVLAN: 100, LastVLAN: 101}}}
	for index, want := range []int{100, 101} {
		if vlan, err := p.vlanOf(index); vlan != want || err != nil {
			t.Error(vlan, err)
		}
	}
	if vlan, err := p.vlanOf(2); err == nil {
		t.Errorf("VLAN %d is of nobody", vlan)
	}
}

// Interrupts are placed, and where they are taken is read back.
func TestPlaced(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if list := irqsOf(root, "0000:41:10.0"); len(list) > 0 {
		t.Error(list)
	}
	for irq, on := range map[string]string{"41": "2\n", "42": "3\n"} {
		put("sys/bus/pci/devices/0000:41:10.0/msi_irqs/"+irq, "msix\n")
		put("proc/irq/"+irq+"/smp_affinity_list", "0-3\n")
		put("proc/irq/"+irq+"/effective_affinity_list", on)
	}
	put("sys/bus/pci/devices/0000:41:10.0/msi_irqs/43", "msix\n") // allocated: nobody handles it yet
	irqs := irqsOf(root, "0000:41:10.0")
	if f := placed(root, irqs, []int{2, 3}); !f.Holds || f.Found != "41:2 42:3" || f.Cure != "" {
		t.Errorf("%+v", f)
	}
	if b, err := os.ReadFile(filepath.Join(root, "proc/irq/42/smp_affinity_list")); err != nil || string(b) != "2-3" {
		t.Errorf("%q, %v", b, err)
	}
	if f := placed(root, irqs, []int{2}); f.Holds || f.Cure == "" {
		t.Errorf("%+v", f)
	}
	if f := placed(root, []string{"99"}, []int{2}); f.Holds || f.Found == "" {
		t.Errorf("%+v", f)
	}
}
