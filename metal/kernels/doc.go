// Package kernels keeps what starts an image's kernel: a copy of the kernel, and an initramfs
// with the agent and the drivers of that kernel. Bare machines fetch both, and the QEMU of a
// virtual machine, which is a user without rights, opens both: everybody may read the files,
// in a directory that nobody else may enter.
package kernels
