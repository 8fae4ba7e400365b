// Package facts reads what the hardware of a machine is as seen from inside:
// from /proc, /sys and SMBIOS, the sources that hwloc and slurmd use too.
//
// On a slice of a host (a machine made of namespaces) much of /sys describes
// the whole host. There, cores are those that the machine may run on, memory is
// the limit of its control group, and what cannot be told apart is left out:
// a fact that is not known stays zero, it is never guessed.
package facts
