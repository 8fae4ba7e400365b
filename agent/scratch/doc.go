// Package scratch gives a node's own disks file systems, for what its programs put
// down for a while. It is done anew at each boot: nothing of an earlier one is left.
// A disk that the order does not name is not touched.
package scratch
