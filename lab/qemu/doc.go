// Package qemu runs one virtual machine: its command line, its monitor (QMP), its
// disk, its TPM. What decides when it runs is in lab/machine.
package qemu
