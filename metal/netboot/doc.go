// Package netboot is the boot service: DHCP, TFTP and HTTP for machines that boot
// from the network, on one interface. It knows no clusters and keeps no orders: it
// asks a Directory what a MAC is to do, and tells an operator what it did for each
// machine and why it did not do more.
package netboot
