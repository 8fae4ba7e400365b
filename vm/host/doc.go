// Package host reads what a computer has for virtual machines and checks what is missing:
// virtualization, IOMMU and interrupt remapping, IOMMU groups, virtual functions, huge
// pages, limits. It reads /proc, /sys and /dev below a root and sets nothing.
package host
