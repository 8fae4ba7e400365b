package hibernate

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/wipe"
	"github.com/muster-hpc/muster/wire"
)

// Absent reports whether no disk looks like that of an area yet.
func Absent(disks []muster.Disk, a wire.MemoryArea) bool {
	return wipe.Match([]wire.CleanDisk{a.Disk}, disks)[0].Absent
}

// OpenArea opens an area on one of these disks.
func OpenArea(disks []muster.Disk, a wire.MemoryArea) (*Area, error) {
	n := wipe.Match([]wire.CleanDisk{a.Disk}, disks)[0]
	if n.Disk == nil {
		return nil, muster.Errorf(muster.EUnavailable, "the disk for the memory is not there: %s", n.Why)
	}
	return Open(wipe.Path(*n.Disk), n.Disk.Size, a.Disk.Keep, a.Key)
}
