package nodeconf_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/nodeconf"
	"github.com/muster-hpc/muster/vm/qemu"
)

// A virtual machine has less memory than its machine, by what its QEMU takes, and none of its host's disks. What
// its host bounds its agent does not bound again.
func TestVirtualMachine(t *testing.T) {
	t.Parallel()
	in := input(2, false)
	in.Cluster.Spec.LinkRate = 1e9
	for id, m := range in.Machines {
		m.Facts.Memory, m.Facts.Disk = 1<<30, 1<<29
		in.Machines[id] = m
	}
	in.OwnKernel = true
	bare, err := nodeconf.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Cluster.Spec.VM = &muster.VMOptions{Emulate: true}
	vm, err := nodeconf.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range vm.Hosts {
		if h.Scratch != 0 || bare.Hosts[i].Scratch == 0 {
			t.Errorf("%s has %d bytes of scratch; as a bare machine %d", h.Name, h.Scratch, bare.Hosts[i].Scratch)
		}
		if less := bare.Hosts[i].Memory - h.Memory; less < 1<<30-qemu.Within(1<<30, false, "") || h.Memory >= qemu.Within(1<<30, false, "") {
			t.Errorf("%s has %d bytes for jobs; as a bare machine %d", h.Name, h.Memory, bare.Hosts[i].Memory)
		}
	}
	if vm.Shape == nil || vm.Shape.Make || !bare.Shape.Make {
		t.Errorf("its agent makes what its host has made: %+v", vm.Shape)
	}
}
