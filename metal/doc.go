// Package metal has bare machines boot, as far as that needs no knowledge of
// clusters: which boot a machine is in, whose turn it is in its rack, what its first
// program is told, and what became of it.
//
// [Boots] stands between the parts that do one thing each. It is the directory that
// the boot service asks (package netboot), the book of the boot server that answers check-ins
// (package bootapi), and has machines switched on by whoever can (package power).
// What must outlive the process is in one small file for each machine; what holds
// secrets is only in memory, and given anew by who gave it first.
package metal
