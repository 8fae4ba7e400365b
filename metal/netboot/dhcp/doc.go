// Package dhcp answers machines that boot: with an address and a boot loader
// (mode Server), or with the boot loader alone beside a site's own DHCP server
// (mode Proxy). It is keyed on the MAC address and nothing else, because a
// machine's firmware, iPXE and systemd each call themselves something else. What
// a MAC may have is asked of a Directory; this package knows no machines.
//
// Nothing is answered on an interface, or for a network, that was not given.
package dhcp
