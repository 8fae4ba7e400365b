package muster

import "cmp"

// HibernationRoom is how much of a disk is kept for the memory of a machine that may hibernate: all
// of it, for what does not fit into half of the memory is written out first, and room for tables.
func HibernationRoom(memory int64) int64 {
	const unit = 1 << 20
	return (memory + memory/64 + 2*unit + unit - 1) / unit * unit
}

// MemoryDisk is the disk at whose end a machine keeps room for its memory, and how much: the largest
// that can be told from others. false: none is twice as large as that.
func (f *Facts) MemoryDisk() (d Disk, keep int64, ok bool) {
	keep = HibernationRoom(f.Memory)
	for _, x := range f.Disks {
		if x.ReadOnly || x.Serial == "" && x.Model == "" || x.Size < 2*keep {
			continue
		}
		if !ok || cmp.Or(cmp.Compare(x.Size, d.Size), cmp.Compare(d.Serial, x.Serial), cmp.Compare(d.Model, x.Model)) > 0 {
			d, ok = x, true
		}
	}
	return d, keep, ok
}
