package muster

import "net/netip"

// DiscoveredMachine is a machine that a site does not know, as it says it is. Nothing of it is
// proven but what is said so.
type DiscoveredMachine struct {
	MAC    string   // that it booted from, as ParseMAC writes it
	MACs   []string // of all its interfaces
	Serial string   // as SMBIOS has it; "" where it has none
	UUID   string
	Facts  *Facts
	// Whole: it has looked at everything, also at what its switches say of themselves,
	// which takes half a minute.
	Whole bool
	// Endorsement is the endorsement key that its TPM shows; nil: it has none.
	Endorsement []byte
	Address     netip.Addr // that was leased to it
	// Switch and Port are where its request for an address came through, as a relay says
	// that the site trusts. Both are "" where none does.
	Switch, Port string
}
