// Package qemu is the command line of a tenant's virtual machine: what hardware it has, of
// which descriptors it is made. Nothing on the line is secret, and no file of the host is
// named there but by a descriptor or by its place in the machine's own root (vm/jail).
package qemu
