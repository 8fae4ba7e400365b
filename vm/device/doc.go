// Package device gives whole PCI devices of a host to virtual machines, and takes them back: graphics processors,
// network cards, NVMe disks, each with all of its IOMMU group.
//
// Whoever takes a device keeps a note of it, which is written before anything is changed and outlives the host's boot:
// what a tenant left on a disk is still there when the host was switched off. With the note a device is given back,
// and a disk erased, wherever the process that took it was killed. What is not in a note is never erased.
package device
