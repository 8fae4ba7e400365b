// Package plan decides how a virtual machine is set up on a machine: which hardware thread
// runs which vCPU, from which memory nodes and pages its memory is, what it looks like from
// inside, which devices it gets. Each setting has a reason and a place where it can be
// read back; what cannot be has a reason and a cure. The package only decides: it reads
// nothing and sets nothing.
//
// Make is the plan of one machine, Lacks what the facts of many say about who could carry
// such virtual machines at all, and Arguments what QEMU is started with.
package plan
