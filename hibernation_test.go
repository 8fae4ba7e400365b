package muster_test

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// The largest disk that can be told from others has the room, if it is twice as large.
func TestMemoryDisk(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	keep := muster.HibernationRoom(4 * gib)
	if keep <= 4*gib || keep > 5*gib || keep%(1<<20) != 0 {
		t.Errorf("%d for 4 GiB", keep)
	}
	disks := []muster.Disk{
		{Name: "sda", Serial: "b", Size: 20 * gib}, {Name: "sdb", Serial: "a", Size: 20 * gib},
		{Name: "sdc", Size: 90 * gib}, {Name: "sdd", Serial: "c", Size: 80 * gib, ReadOnly: true}, {Name: "sde", Serial: "z", Size: 9 * gib},
	}
	for range 2 {
		f := muster.Facts{Memory: 4 * gib, Disks: disks}
		if d, n, ok := f.MemoryDisk(); !ok || d.Serial != "a" || n != keep {
			t.Errorf("%+v %d %v", d, n, ok)
		}
		disks[0], disks[1] = disks[1], disks[0] // names and their order change from boot to boot
	}
	small := muster.Facts{Memory: 4 * gib, Disks: []muster.Disk{{Serial: "a", Size: 8 * gib}}}
	if _, _, ok := small.MemoryDisk(); ok {
		t.Error("nothing is left for scratch")
	}
}
