package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/vm/host"
	"github.com/muster-hpc/muster/vm/host/hosttest"
	"github.com/muster-hpc/muster/wire"
)

func TestMachinePlan(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s)
	w.run("create", "cfd", "-n", "2", "--head", "shared").want(t, 0, "")
	var c wire.Cluster
	if err := json.Unmarshal([]byte(w.run("show", "cfd", "-o", "json").out), &c); err != nil {
		t.Fatal(err)
	}
	machine := c.Nodes[0].Machine
	w.refused(3, muster.ReasonNoSuchMachine, "machine", "plan", "nowhere")
	w.refused(3, muster.ReasonNoSuchTopology, "machine", "plan", string(machine)).naming(string(machine))
	w.refused(3, muster.ReasonNoSuchNode, "machine", "plan", "cfd", "n77").naming("n77")
	w.refused(2, muster.ReasonBadUsage, "machine", "plan")
	w.refused(2, muster.ReasonBadUsage, "machine", "plan", "x", "--tune", "maybe", "--nic", "e1000", "--pages", "4KiB", "--cores", "-1", "--host-cores", "-2", "--memory", "much").
		naming("--tune", "--nic", "--pages", "--cores", "--host-cores", "--memory")

	// A machine that has not said what it has for virtual machines.
	tree := host.Source{FS: hosttest.Tree(t, hosttest.TwoSockets, nil)}
	s.Agents.PutTopology(machine, tree.Topology())
	if r := w.run("machine", "plan", string(machine)); r.code != 6 || !strings.Contains(r.out, "no-kvm: the machine has not said") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	// One that has.
	if err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		m, err := tx.Machine(machine)
		if err != nil {
			return err
		}
		m.Facts.VMHost, m.Facts.CPUs = tree.Facts(), nil
		return tx.PutMachine(m, "test")
	}); err != nil {
		t.Fatal(err)
	}
	r := w.run("machine", "plan", "cfd", c.Nodes[0].Name, "--nic", "vf")
	for _, want := range []string{
		string(machine) + ": a virtual machine of 30 vCPUs and 246 GiB, tuned\n", "kernel arguments of the host: intel_iommu=on iommu=pt", "\nhost-threads: 8,24\n  because QEMU's own threads",
		"  read back: /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages: ", "memory-nodes: 2 memory nodes, distances 10 20 / 20 10",
		"nic: a virtual function of 0000:41:00.0, at its memory node 1",
	} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("no %q: status %d\n%s%s", want, r.code, r.out, r.err)
		}
	}
	var p wire.MachinePlan
	if err := json.Unmarshal([]byte(w.run("machine", "plan", string(machine), "--cores", "4", "--memory", "8GiB", "--host-cores", "2", "--save", "--cpu", "Skylake-Server", "-o", "json").out), &p); err != nil {
		t.Fatal(err)
	}
	if p.Plan.Memory != 8<<30 || len(p.Plan.CPUs) != 8 || len(p.Plan.HostCPUs) != 4 || !slices.Contains(p.Arguments, "Skylake-Server,invtsc=off,vmx=off,x2apic=on") || p.From != wire.TopologyFromAgent || *p.Options.HostCores != 2 {
		t.Errorf("%+v", p)
	}
	// What cannot be, all at once, and in JSON as well.
	r = w.run("machine", "plan", string(machine), "--device", "0000:18:00.0", "--device", "0000:99:00.0", "--cores", "99", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &p); err != nil || r.code != 6 || len(p.Arguments) != 0 {
		t.Errorf("status %d, %v\n%s", r.code, err, r.out)
	}
	var list []string
	for _, l := range p.Plan.Lacks {
		list = append(list, l.Reason)
	}
	if !slices.Equal(list, []string{muster.LackVFGroup, muster.LackCores, muster.LackDevice}) {
		t.Errorf("%+v", p.Plan.Lacks)
	}
	if r := w.run("machine", "plan", string(machine), "--tune", "off"); r.code != 0 || !strings.Contains(r.out, "untuned") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
}
