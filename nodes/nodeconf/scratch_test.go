package nodeconf_test

import (
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/nodeconf"
)

// The room for a machine's memory at the end of its disk is no scratch space: the scheduler takes no node that has less than
// it was said to have.
func TestScratchBesideMemory(t *testing.T) {
	t.Parallel()
	in := input(2, true)
	in.OwnKernel = true
	for id, m := range in.Machines {
		m.Facts.Memory, m.Facts.Disk, m.Facts.Disks = 1536<<20, 8<<30, []muster.Disk{{Serial: string(id), Size: 8 << 30}}
		in.Machines[id] = m
	}
	of := func(o muster.OnPause) int64 {
		t.Helper()
		in.Cluster.Spec.OnPause = o
		c, err := nodeconf.Build(in)
		if err != nil {
			t.Fatal(err)
		}
		return c.Hosts[1].Scratch
	}
	whole, beside := of(""), of(muster.PauseHibernate)
	if left := 8<<30 - muster.HibernationRoom(1536<<20); whole <= left || beside >= left || beside < left/10*9-10 {
		t.Errorf("%d bytes of scratch, %d beside the room for its memory, with which %d are left", whole, beside, left)
	}
}
