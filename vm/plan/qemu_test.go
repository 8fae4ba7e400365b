package plan_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/vm/plan"
)

// qemuCPU is one of query-cpus-fast, or of query-hotpluggable-cpus.
type qemuCPU struct {
	Index int `json:"cpu-index"`
	Props struct {
		Socket int `json:"socket-id"`
		Die    int `json:"die-id"`
		Core   int `json:"core-id"`
		Thread int `json:"thread-id"`
		Node   int `json:"node-id"`
	} `json:"props"`
}

type qemuSays struct {
	cpus, places []qemuCPU
	memory       []struct {
		ID   string
		Size int64
	}
	numa string
	pci  string
}

// asked starts the real QEMU with a plan, stopped before its first instruction, and asks what
// it made of it.
func asked(t *testing.T, p muster.VMPlan, a plan.Attachment, more ...string) qemuSays {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args := append([]string{"-nodefaults", "-no-user-config", "-display", "none", "-S", "-qmp", "stdio"}, more...)
	for _, s := range plan.Arguments(p, a) {
		// This host has neither the memory nor its nodes.
		s = strings.ReplaceAll(s, "prealloc=on", "reserve=off")
		for _, n := range p.MemoryNodes {
			if n.Host != nil {
				s = strings.ReplaceAll(s, fmt.Sprintf("host-nodes=%d,", *n.Host), "host-nodes=0,")
			}
		}
		args = append(args, s)
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 8<<20)
	say := func(command string, into any) {
		if _, err := fmt.Fprintln(in, command); err != nil {
			t.Fatalf("%v: %s\n%v", err, errs.String(), args)
		}
		for lines.Scan() {
			var r struct {
				Return json.RawMessage `json:"return"`
				Error  json.RawMessage `json:"error"`
			}
			if json.Unmarshal(lines.Bytes(), &r) != nil || r.Return == nil && r.Error == nil {
				continue
			}
			if r.Error != nil {
				t.Fatalf("%s: %s", command, r.Error)
			}
			if into != nil {
				if err := json.Unmarshal(r.Return, into); err != nil {
					t.Fatal(err)
				}
			}
			return
		}
		t.Fatalf("QEMU ended: %s\n%v", errs.String(), args)
	}
	var s qemuSays
	say(`{"execute":"qmp_capabilities"}`, nil)
	say(`{"execute":"query-cpus-fast"}`, &s.cpus)
	say(`{"execute":"query-hotpluggable-cpus"}`, &s.places)
	say(`{"execute":"query-memdev"}`, &s.memory)
	say(`{"execute":"human-monitor-command","arguments":{"command-line":"info numa"}}`, &s.numa)
	say(`{"execute":"human-monitor-command","arguments":{"command-line":"info qtree"}}`, &s.pci)
	if said := strings.TrimSpace(errs.String()); strings.Contains(said, "not present in any NUMA") || strings.Contains(said, "error") {
		t.Errorf("QEMU says: %s", said)
	}
	return s
}

// emulated is a plan of a host without KVM.
func emulated(t *testing.T, h plan.Host, o muster.VMOptions) muster.VMPlan {
	t.Helper()
	vm := *h.VM
	vm.KVM, h.VM, o.Emulate = false, &vm, true
	p := plan.Make(h, o)
	if len(p.Lacks) > 0 || !p.Emulated {
		t.Fatalf("%+v", p.Lacks)
	}
	return p
}

// checkQEMU compares the virtual machine that QEMU made with the plan.
func checkQEMU(t *testing.T, p muster.VMPlan, s qemuSays) {
	t.Helper()
	want, got := map[muster.VMCPU]bool{}, map[muster.VMCPU]bool{}
	for _, c := range p.CPUs {
		c.Host = nil
		want[c] = true
	}
	for _, c := range s.cpus {
		got[muster.VMCPU{Socket: c.Props.Socket, Die: c.Props.Die, Core: c.Props.Core, Thread: c.Props.Thread, MemoryNode: c.Props.Node}] = true
	}
	if len(s.cpus) != len(p.CPUs) || len(got) != len(want) {
		t.Errorf("%d vCPUs, %d planned", len(s.cpus), len(p.CPUs))
	}
	for c := range want {
		if !got[c] {
			t.Errorf("QEMU has no %+v", c)
		}
	}
	if n := p.Sockets * p.Dies * p.Cores * p.Threads; len(s.places) != n {
		t.Errorf("%d places, %d planned", len(s.places), n)
	}
	sizes := map[string]int64{}
	for _, m := range s.memory {
		sizes[m.ID] = m.Size
	}
	for _, n := range p.MemoryNodes {
		if id := fmt.Sprintf("mem%d", n.ID); sizes[id] != n.Memory {
			t.Errorf("%s: %d bytes, %d planned", id, sizes[id], n.Memory)
		}
		if line := fmt.Sprintf("node %d size: %d MB", n.ID, n.Memory>>20); len(p.MemoryNodes) > 1 && !strings.Contains(s.numa, line) {
			t.Errorf("no %q in %s", line, s.numa)
		}
	}
}

// The real QEMU takes the arguments, and makes of them what the plan says.
func TestQEMU(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("no qemu-system-x86_64: apt-get install qemu-system-x86")
	}
	net := plan.Attachment{Machine: "pc-q35-7.2", Netdev: "net0", MAC: "52:54:00:12:34:56"}
	hub := []string{"-netdev", "hubport,id=net0,hubid=0"}
	h := server(t)

	// A whole host, in small: 30 of 32 places, two memory nodes, a card at the second.
	p := emulated(t, h, muster.VMOptions{})
	s := asked(t, p, net, hub...)
	checkQEMU(t, p, s)
	if !strings.Contains(s.pci, "numa_node = 1 (0x1)") || !strings.Contains(s.pci, "vectors = 16 (0x10)") {
		t.Errorf("%s", s.pci)
	}

	p = emulated(t, h, muster.VMOptions{Untuned: true, Cores: 2, Memory: 512 * mib})
	checkQEMU(t, p, asked(t, p, net, hub...))
	p = emulated(t, h, muster.VMOptions{Cores: 4, Memory: 512 * mib, Save: true, CPU: "Opteron_G3"})
	checkQEMU(t, p, asked(t, p, plan.Attachment{Machine: "pc-q35-7.2"}))

	// Dies, a socket with fewer, cores that are missing, a memory node without cores, one
	// without memory.
	group := func(first, cores int) muster.CoreGroup {
		g := muster.CoreGroup{Caches: []muster.Cache{{Level: 3, Size: mib, Shared: 1, Count: 1}}}
		for i := range cores {
			g.Cores = append(g.Cores, []int{first + 2*i, first + 2*i + 1})
		}
		return g
	}
	odd := plan.Host{
		Topology: muster.Topology{Source: "x", Packages: []muster.Package{
			{ID: 0, Nodes: []muster.MemoryNode{{ID: 0, Memory: 4 * gib, Groups: []muster.CoreGroup{group(0, 2), group(10, 1)}}, {ID: 1, Memory: 2 * gib}}},
			{ID: 3, Nodes: []muster.MemoryNode{{ID: 4, Groups: []muster.CoreGroup{group(20, 2)}}}},
		}},
		VM: &muster.VMHost{MemoryNodes: []muster.VMMemoryNode{
			{ID: 0, Memory: 4 * gib, Distances: []int{10, 17, 32}, Pages: []muster.PagePool{{Size: 2 * mib}}}, {ID: 1, Memory: 2 * gib, Distances: []int{17, 10, 28}}, {ID: 4, Distances: []int{32, 28, 10}},
		}},
	}
	p = emulated(t, odd, muster.VMOptions{})
	if p.Sockets != 2 || p.Dies != 2 || len(p.CPUs) != 10 || len(p.MemoryNodes) != 3 || p.MemoryNodes[1].Memory != 0 || !slices.Equal(p.MemoryNodes[1].Distances, []int{32, 10, 28}) || *p.MemoryNodes[2].Host != 1 {
		t.Errorf("%+v", p)
	}
	checkQEMU(t, p, asked(t, p, net, hub...))
}
