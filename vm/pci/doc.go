// Package pci binds devices of the PCI bus to drivers of the kernel, vfio-pci above all, and takes them from these,
// by sysfs. Each step is read back.
package pci
