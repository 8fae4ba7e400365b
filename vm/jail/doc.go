// Package jail is where the QEMU of a tenant's virtual machine runs: a user of its own without
// capabilities; mount, pid, network, IPC and host name namespaces of its own; a root in which
// there are the host's programs, to be read, and nothing else; the calls of the kernel that
// package seccomp leaves, of which QEMU then gives up more itself. What a machine is made of it
// inherits as open descriptors. Who breaks out of the guest is there, and has no way on.
//
// It ends with the process that started it, however that ends.
package jail
