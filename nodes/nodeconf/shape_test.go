package nodeconf_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/nodeconf"
)

// Compute nodes are told of their shape, and the scheduler has no more of them than that; a
// separate head has its whole machine, and links held to the rate.
func TestShape(t *testing.T) {
	t.Parallel()
	in := input(2, true)
	for id, m := range in.Machines {
		m.Facts.Cores, m.Facts.Sockets, m.Facts.Threads, m.Facts.Memory = 8, 2, 16, 16<<30
		m.Facts.Topology = &muster.Topology{Packages: []muster.Package{
			{Nodes: []muster.MemoryNode{{Groups: []muster.CoreGroup{{Caches: []muster.Cache{{Level: 3, Size: 16 << 20, Count: 1}, {Level: 2, Size: 1 << 20, Count: 4}}}}}}},
			{Nodes: []muster.MemoryNode{{Groups: []muster.CoreGroup{{Caches: []muster.Cache{{Level: 3, Size: 8 << 20, Count: 2}}}, {}}}}},
		}}
		in.Machines[id] = m
	}
	in.Cluster.Spec.Shape = &muster.Shape{Cores: 2, Sockets: 1, MemoryPerCore: 1 << 30, NUMA: muster.NUMAHidden, KernelArgs: []string{"nosmt"}}
	in.Cluster.Spec.LinkRate = 1e9
	in.OwnKernel = true
	in.Node = in.Nodes[1]
	c, err := nodeconf.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Shape
	if s == nil || s.Cores != 2 || s.Sockets != 1 || s.Memory != 2<<30 || s.LinkRate != 1e9 || !s.Make || len(s.KernelArgs) != 2 || s.KernelArgs[1] != "numa=off" {
		t.Fatalf("%+v", s)
	}
	if c.Cache != 0 {
		t.Errorf("its kernel does not know its caches: %d bytes", c.Cache)
	}
	in.Cluster.Spec.VM = &muster.VMOptions{}
	v, err := nodeconf.Build(in)
	if err != nil || v.Cache != 32<<20 {
		t.Errorf("the last caches of a virtual machine's host hold %d bytes, %v", v.Cache, err)
	}
	in.Cluster.Spec.VM = nil
	if c.Cores != 2 || c.Memory != 2<<30-128<<20 || c.Hosts[1].Sockets != 1 {
		t.Errorf("the scheduler has %d cores and %d bytes of it, in %d sockets", c.Cores, c.Memory, c.Hosts[1].Sockets)
	}
	in.Node = in.Nodes[0]
	if c, err = nodeconf.Build(in); err != nil {
		t.Fatal(err)
	}
	if s := c.Shape; s == nil || s.Cores != 0 || s.Memory != 0 || len(s.KernelArgs) != 0 || s.LinkRate != 1e9 {
		t.Errorf("of the head: %+v", s)
	}
	if c.Cores != 8 {
		t.Errorf("the head has %d cores", c.Cores)
	}
	// What a slice puts away lies in its memory, of which it has less.
	in.OwnKernel = false
	for id, m := range in.Machines {
		m.Facts.Disk = 8 << 30
		in.Machines[id] = m
	}
	if c, err = nodeconf.Build(in); err != nil || c.Hosts[1].Scratch != 1<<30 || c.Hosts[0].Scratch != 8<<30 {
		t.Errorf("scratch of %+v %v", c.Hosts, err)
	}
	in.Cluster.Spec.Shape, in.Cluster.Spec.LinkRate = nil, 0
	if c, err = nodeconf.Build(in); err != nil || c.Shape != nil {
		t.Errorf("%+v %v", c.Shape, err)
	}
}
