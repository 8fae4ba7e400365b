package dhcp

import "net/netip"

// Standing is how a machine stands with the site.
type Standing int

// Standings.
const (
	// Forbidden machines get no answer at all.
	Forbidden Standing = iota
	// Unknown machines get an address of the discovered machines' ranges, and what the
	// Directory has for them.
	Unknown
	// Known machines get their own address, or one of the ranges.
	Known
)

// Verdict is what a machine may have.
type Verdict struct {
	Standing Standing
	// Address is kept for this machine. Invalid: any of the ranges.
	Address netip.Addr
	// Hostname is told to the machine, if there is one.
	Hostname string
	// Boot is the public number of the boot that was ordered. Empty: the machine
	// gets an address and no boot loader.
	Boot string
	// Why is one line for the operator: why there is no answer, or no script.
	Why string
}

// Directory says what a MAC is to do. It is asked for every packet, by several
// goroutines, and must answer from memory: what it takes is waited for by every
// machine that boots. It must not call back into this package.
type Directory interface {
	// Decide says what the machine that asks may have.
	Decide(r *Request) Verdict
	// Holds says whether the machine's node is up, so that its lease does not
	// run out whatever the clock says.
	Holds(m MAC) bool
}
