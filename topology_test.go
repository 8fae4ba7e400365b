package muster_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

func goodTopology() muster.Topology {
	caches := []muster.Cache{{Level: 3, Size: 24 << 20, Shared: 4, Count: 1}, {Level: 1, Size: 48 << 10, Shared: 2, Count: 2}}
	return muster.Topology{Source: "hwloc", Packages: []muster.Package{
		{ID: 0, Nodes: []muster.MemoryNode{{ID: 0, Memory: 1 << 30, Groups: []muster.CoreGroup{{Caches: caches, Cores: [][]int{{0, 4}, {1, 5}}}}}, {ID: 2, Memory: 1 << 34}}},
		{ID: 1, Nodes: []muster.MemoryNode{{ID: 1, Memory: 1 << 30, Groups: []muster.CoreGroup{{Caches: caches, Cores: [][]int{{2, 6}, {3, 7}}}}}}},
	}, NICs: []muster.NearNIC{{Name: "eno1", Node: new(1), PCIAddress: "0000:81:00.0", Speed: 25e9}, {Name: "eno2"}}}
}

func TestTopology(t *testing.T) {
	t.Parallel()
	good := goodTopology()
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	if good.Cores() != 4 || !reflect.DeepEqual(good.Threads(), []int{0, 4, 1, 5, 2, 6, 3, 7}) {
		t.Errorf("%d cores, threads %v", good.Cores(), good.Threads())
	}
	for want, spoil := range map[string]func(p *muster.Topology){
		"source":        func(p *muster.Topology) { p.Source = "" },
		"stands twice":  func(p *muster.Topology) { p.Packages[1].Nodes[0].Groups[0].Cores[0][0] = 0 },
		"thread -1":     func(p *muster.Topology) { p.Packages[1].Nodes[0].Groups[0].Cores[0][0] = -1 },
		"no threads":    func(p *muster.Topology) { p.Packages[1].Nodes[0].Groups[0].Cores[0] = nil },
		"0 threads":     func(p *muster.Topology) { p.Packages = nil },
		"memory node":   func(p *muster.Topology) { p.Packages[0].Nodes[0].Memory = -1 },
		"level 9":       func(p *muster.Topology) { p.Packages[0].Nodes[0].Groups[0].Caches[0].Level = 9 },
		"times -5":      func(p *muster.Topology) { p.Packages[0].Nodes[0].Groups[0].Caches[0].Size = -5 },
		"kinds of cach": func(p *muster.Topology) { p.Packages[0].Nodes[0].Groups[0].Caches = make([]muster.Cache, 65) },
		"network card":  func(p *muster.Topology) { p.NICs[1].Name = "eno1" },
		"2500 network":  func(p *muster.Topology) { p.NICs = make([]muster.NearNIC, 2500) },
		"no name":       func(p *muster.Topology) { p.NICs[0].Name = "a\x1b[2J" },
		"card eno1 has": func(p *muster.Topology) { p.NICs[0].Node = new(-1) },
		"card eno2 has": func(p *muster.Topology) { p.NICs[1].Speed = -1 },
		"5000 packages": func(p *muster.Topology) { p.Packages = append(p.Packages, make([]muster.Package, 4998)...) },
	} {
		bad := goodTopology()
		spoil(&bad)
		if err := bad.Check(); err == nil || muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	c := goodCertificate()
	bad := goodTopology()
	bad.Source = ""
	c.Conditions.Topology = &bad
	wantProblem(t, c, "conditions.topology bad-value")
}
