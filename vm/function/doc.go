// Package function gives virtual functions of a network card to virtual machines, and takes them back. The card's
// physical function sets MAC, VLAN, spoof check and trust; sysfs gives the function to vfio-pci. Everything is read
// back.
//
// Whoever takes a function keeps a note, which is written before anything is changed: with it Give gives back what was
// taken, wherever the process that took it was killed.
package function
