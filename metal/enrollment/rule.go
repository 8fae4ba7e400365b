package enrollment

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/wildcard"
)

// Rules are tried in their order; the first one that matches decides.
type Rules []Rule

// Rule says what becomes of machines that look so.
type Rule struct {
	Name  string // unique; it stands in the audit
	Match Match
	Then  Then
}

// Match is what a machine must look like: all that is not empty. Patterns may have * and
// ?, and do not tell capitals from small letters.
type Match struct {
	MAC             string   // that it booted from
	Serials         []string // one of them, as they are
	Vendor, Product string
	// Switch and Port are where it is plugged in: as a trusted relay says, or else its
	// neighbour by LLDP.
	Switch, Port string
	TPM          bool // it shows one
}

// Then is what becomes of it. Class, Rack, Position, Name and Power are texts with
// places: see Places.
type Then struct {
	State          muster.RegistrationState // approved, forbidden
	Name           string                   // "": m- and its MAC
	Class          string
	Rack, Position string
	Power          string // as ParsePowerAddress reads it; "": wol
	// Switched is what else is said of its power address. A rule pins no certificate:
	// each controller has its own.
	Switched muster.PowerAddress
	Password Secret // of its management controller
	PowerKey Secret // its key K_G, as ParsePowerKey reads it
	MinTrust muster.Trust
	Service  bool
}

// Secret is a text that is never printed.
type Secret string

// String hides it.
func (Secret) String() string { return "(secret)" }

// GoString hides it from %#v, too.
func (Secret) GoString() string { return "(secret)" }

// Decision is what a rule says of one machine.
type Decision struct {
	Rule           string
	State          muster.RegistrationState
	Name           muster.MachineID // "": it keeps its own
	Class          string
	Rack, Position string
	Power          muster.PowerAddress
	Password       Secret
	PowerKey       Secret
	MinTrust       muster.Trust
	Service        bool
	// Claimed: it rests on what the machine says of itself only.
	Claimed bool
}

// For is what the first rule that matches says; ok is false where none does. The error
// is EInvalid: a rule matches, and what it says cannot be said of this machine, which
// must wait then. The decision holds the rule's name in any case.
func (r Rules) For(g muster.DiscoveredMachine) (d Decision, ok bool, err error) {
	seen := look(g)
	for _, rule := range r {
		if rule.Match.fits(seen) {
			d, err = rule.Then.of(seen)
			d.Rule = rule.Name
			d.Claimed = !seen.vouched || rule.Match.Switch == "" || rule.Match.Port == ""
			return d, true, err
		}
	}
	return Decision{}, false, nil
}

// looks is a discovered machine as rules see it.
type looks struct {
	mac, serial     string
	vendor, product string
	at, port        string // switch and port
	vouched         bool   // a trusted relay says at and port
	tpm             bool
}

func look(g muster.DiscoveredMachine) looks {
	l := looks{mac: g.MAC, serial: g.Serial, at: g.Switch, port: g.Port, vouched: g.Switch != "" && g.Port != "", tpm: len(g.Endorsement) > 0}
	if g.Facts == nil {
		return l
	}
	l.vendor, l.product = g.Facts.Vendor, g.Facts.Product
	i := slices.IndexFunc(g.Facts.NICs, func(n muster.NIC) bool { return n.MAC == g.MAC && n.Neighbour != nil })
	if i >= 0 && !l.vouched {
		l.at, l.port = g.Facts.NICs[i].Neighbour.System, g.Facts.NICs[i].Neighbour.Port
	}
	return l
}

func (m Match) fits(l looks) bool {
	for _, p := range [][2]string{{m.MAC, l.mac}, {m.Vendor, l.vendor}, {m.Product, l.product}, {m.Switch, l.at}, {m.Port, l.port}} {
		if p[0] != "" && (p[1] == "" || !wildcard.Match(strings.ToLower(p[0]), strings.ToLower(p[1]))) {
			return false
		}
	}
	return (len(m.Serials) == 0 || l.serial != "" && slices.Contains(m.Serials, l.serial)) && (!m.TPM || l.tpm)
}
