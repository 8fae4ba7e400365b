package scratch

// kind is a kind of file systems that can be made.
type kind struct {
	name    string
	program string
	args    []string
	options string // of the mount
}

// kinds are those that are made, the best first: the one whose program the image
// has. Disks are discarded when they are cleaned, not while a node starts. Of ext4 the
// tables are not written in advance, and not in the background either: that would be
// in every figure that the node's disk is measured with. There is no journal: it is for
// finding files again after a crash, and here each boot begins with none.
func kinds() []kind {
	return []kind{
		{"ext4", "mkfs.ext4", []string{"-q", "-F", "-m", "0", "-L", "scratch", "-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=1"}, "noinit_itable"},
		{"xfs", "mkfs.xfs", []string{"-q", "-f", "-K", "-L", "scratch"}, ""},
	}
}
