package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/store/storetest"
	"github.com/muster-hpc/muster/wire"
)

func TestMachineTopology(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 3, Build: true})
	w := at(t, s)
	w.run("create", "cfd", "-n", "2", "--head", "shared").want(t, 0, "")
	var c wire.Cluster
	if err := json.Unmarshal([]byte(w.run("show", "cfd", "-o", "json").out), &c); err != nil {
		t.Fatal(err)
	}
	machine := c.Nodes[0].Machine
	w.refused(3, muster.ReasonNoSuchMachine, "machine", "topology", "nowhere")
	w.refused(3, muster.ReasonNoSuchTopology, "machine", "topology", string(machine)).naming(string(machine))
	top := muster.Topology{
		Source: "hwloc", Packages: []muster.Package{{ID: 0, Nodes: []muster.MemoryNode{{ID: 0, Memory: 1 << 30, Groups: []muster.CoreGroup{{
			Caches: []muster.Cache{{Level: 3, Size: 32 << 20, Shared: 4, Count: 1}, {Level: 1, Size: 48 << 10, Shared: 2, Count: 2}}, Cores: [][]int{{0, 2}, {1, 3}},
		}}}}}},
		NICs: []muster.NearNIC{{Name: "eno1", Node: new(0), PCIAddress: "0000:01:00.0", Speed: 25e9}, {Name: "eth9"}},
	}
	// One that was measured says it in its certificate.
	cert := storetest.NewCertificate(c.ID, c.Nodes[0].Name)
	cert.Machine, cert.Level = machine, muster.ValidateFull
	cert.Conditions.Processor, cert.Conditions.Topology = "AMD EPYC 9354", &top
	peak := &muster.Reference{Value: 52e9, Source: muster.SourcePeak, Text: "1 core x 3.25 GHz x 16 flop per cycle"}
	for _, m := range []struct {
		name, unit string
		median     float64
	}{{"arith.1.double.O0", "flop/s", 1.3e9}, {"arith.1.double.fast", "flop/s", 26e9}, {"arith.loop.double.O0", "s", 1e-9}} {
		one := muster.Metric{Name: m.name, Unit: m.unit, Threads: 1, Launches: 6, Median: m.median, Min: m.median / 2, Max: m.median * 2, Verdict: muster.GradeUnknown}
		if m.unit == "flop/s" {
			one.Reference = peak
		}
		cert.Metrics = append(cert.Metrics, one)
	}
	if r := w.run("bench", "mixes"); r.code != 0 || !strings.Contains(r.out, "No mixes") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	if err := s.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return tx.PutCertificate(storetest.Signed(t, cert)) }); err != nil {
		t.Fatal(err)
	}
	r := w.run("machine", "topology", string(machine))
	for _, want := range []string{"by hwloc, in certificate " + string(cert.ID), "socket 0\n", "memory 0, 1 GiB", "L3 32 MiB, 2x L1 48 KiB: cores 0+2 1+3", "    network card eno1, 25.00 Gbit/s, 0000:01:00.0", "near to all memory, or not known\n  network card eth9"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("no %q: status %d\n%s%s", want, r.code, r.out, r.err)
		}
	}
	// One that answers says it itself, measured or not.
	top.NICs[1].Name = "eth7"
	s.Agents.PutTopology(machine, &top)
	var out wire.MachineTopology
	if err := json.Unmarshal([]byte(w.run("machine", "topology", string(machine), "-o", "json").out), &out); err != nil || out.From != wire.TopologyFromAgent || out.Topology.NICs[1].Name != "eth7" || out.Certificate != "" {
		t.Errorf("%+v, %v", out, err)
	}
	if r := w.run("machine", "topology", string(machine), "-o", "svg"); r.code != 0 || !strings.HasPrefix(r.out, "<svg ") || !strings.Contains(r.out, "eth7") {
		t.Errorf("status %d\n%.300s%s", r.code, r.out, r.err)
	}
	if r := w.run("machine", "topology", string(machine), "-o", "png"); r.code != 2 {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}

	r = w.run("bench", "mixes")
	for _, want := range []string{"AMD EPYC 9354: 1 machine, 1 certified", "peak of a core: 52.00 Gflop/s in double precision", "1.300 Gflop/s (2.5 %)", "26.00 Gflop/s (50.0 %)"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("no %q: status %d\n%s%s", want, r.code, r.out, r.err)
		}
	}
	var table wire.MixTable
	if err := json.Unmarshal([]byte(w.run("bench", "mixes", "--class", "epyc", "-o", "json").out), &table); err != nil || len(table.Models) != 1 || len(table.Models[0].Mixes) != 2 || table.Models[0].Mixes[0].Loop != 1e-9 {
		t.Errorf("%+v, %v", table, err)
	}
	if r := w.run("bench", "mixes", "--class", "none"); r.code != 0 || !strings.Contains(r.out, "No mixes") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
	if r := w.run("certificate", "show", "cfd", c.Nodes[0].Name); r.code != 0 || !strings.Contains(r.out, "Mixes of arithmetic on one core") || strings.Contains(r.out, "arith.") {
		t.Errorf("status %d\n%s%s", r.code, r.out, r.err)
	}
}
