// Package rmcp is the wire format of IPMI over a network: RMCP packets, the
// RAKP key exchange of RMCP+, sealed sessions, and IPMI messages. It does no
// I/O. The driver metal/power/ipmi and the controller metal/power/bmc are its two sides.
//
// Section numbers are those of the IPMI specification v2.0 rev. 1.1. Numbers
// on the wire have their lowest byte first.
package rmcp
