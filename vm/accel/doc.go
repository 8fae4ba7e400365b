// Package accel is how QEMU executes what a virtual machine computes: by the host's
// processor (KVM) where that works, by translation (TCG) elsewhere.
package accel
