package muster

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Registration is a bare machine as its site knows it: how it is recognised on a
// network, how it is switched, where it stands. What it is made of it tells itself,
// when it is booted for the first time.
type Registration struct {
	ID    MachineID         `json:"name"`
	State RegistrationState `json:"state,omitempty"`
	NICs  []RegisteredNIC   `json:"nics"`
	// Serial and UUID are SMBIOS's. Where they are given, a machine that says
	// others is not this one.
	Serial string       `json:"serial,omitempty"`
	UUID   string       `json:"uuid,omitempty"`
	Power  PowerAddress `json:"power"`
	// Class names machines of one kind; "": made from the facts.
	Class    string `json:"class,omitempty"`
	Rack     string `json:"rack,omitempty"`
	Position string `json:"position,omitempty"` // in the rack
	Chassis  string `json:"chassis,omitempty"`  // that it shares with others
	// Service machines are preferred for separate heads.
	Service bool `json:"service,omitempty"`
	// MinTrust is the least that must vouch for it; "": what [Registration.RequiredTrust]
	// says.
	MinTrust Trust `json:"min_trust,omitempty"`

	// Muster fills in the rest.

	// EndorsementKey is the public key of its TPM (PKIX, DER), enrolled when it was
	// approved.
	EndorsementKey []byte `json:"endorsement_key,omitempty"`
	// ObservedEK is the endorsement key that it showed last. It proves nothing: it is
	// what is enrolled when an administrator approves the machine.
	ObservedEK []byte `json:"observed_endorsement_key,omitempty"`
	Facts      *Facts `json:"facts,omitempty"` // as it told them last
	// Accepted are the facts before Changed, until an administrator accepts what
	// changed; nil: nothing did.
	Accepted *Facts    `json:"accepted_facts,omitempty"`
	Changed  []string  `json:"changed,omitempty"` // what differs from Accepted, in words
	Added    time.Time `json:"added,omitzero"`
	By       string    `json:"by,omitempty"`    // who added it; "" where it came by itself
	Seen     time.Time `json:"seen,omitzero"`   // when it booted last, to the hour
	Trust    Trust     `json:"trust,omitempty"` // how far it was believed then
	// Remark says why it waits although a rule would take it in; "" otherwise.
	Remark string `json:"remark,omitempty"`
	// Asked is when an administrator asked that it tells anew what it is made of. It
	// is done when it is Seen after that.
	Asked time.Time `json:"asked,omitzero"`
	// ManualFence is what administrators are asked to do, and have answered; nil: nothing.
	ManualFence *ManualFence `json:"manual_fence,omitempty"`
}

// RegistrationState says what may become of a bare machine.
type RegistrationState string

// States of registrations.
const (
	RegistrationWaiting  RegistrationState = "waiting"  // it came by itself, and waits for an administrator
	RegistrationApproved RegistrationState = "approved" // it is a machine of the site
	RegistrationBlocked  RegistrationState = "blocked"  // its network boots are not answered
)

// RegisteredNIC is a network interface of a bare machine.
type RegisteredNIC struct {
	MAC string `json:"mac"` // as ParseMAC writes it: of Ethernet a MAC, of InfiniBand the port's GUID
	Use string `json:"use"` // management, message
	// Switch and Port are what it is plugged into, where that is known.
	Switch string `json:"switch,omitempty"`
	Port   string `json:"port,omitempty"`
}

// Uses of network interfaces.
const (
	UseManagement = "management" // boots, is managed, reaches storage
	UseMessage    = "message"    // carries the messages of a cluster
)

var (
	machineName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	plainLabel  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._/:-]{0,62}[A-Za-z0-9])?$`)
)

// mostNICs bounds the interfaces of one machine.
const mostNICs = 32

// RequiredTrust is the least that must vouch for the machine before it becomes a node,
// where the site asks for this much of all: what its registration says, else its TPM
// if that is enrolled. One that keeps silent may be another machine.
func (r Registration) RequiredTrust(site Trust) Trust {
	switch {
	case r.MinTrust != "":
		return r.MinTrust
	case len(r.EndorsementKey) > 0:
		return TrustTPM
	}
	return site
}

// Leaf is the switch that its messages go through: that of its message interface, as far
// as it is registered; "": none is.
func (r Registration) Leaf() string {
	for _, n := range r.NICs {
		if n.Use == UseMessage && n.Switch != "" {
			return n.Switch
		}
	}
	return ""
}

// Check reports everything that is wrong with what an administrator said of a
// machine. Its MACs are those of ParseMAC.
func (r Registration) Check() []Problem {
	var list []Problem
	bad := func(field, hint, format string, args ...any) {
		list = append(list, Problem{Field: field, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if r.ID == "" {
		list = append(list, Problem{Field: "name", Reason: ReasonRequired, Message: "the name is missing", Hint: "name the machine with small letters, digits, dots and dashes, such as r1-n01"})
	} else if !machineName.MatchString(string(r.ID)) {
		bad("name", "write small letters, digits, dots and dashes, such as r1-n01", "%.70q is not a name", string(r.ID))
	}
	list = append(list, r.checkNICs()...)
	for _, l := range []struct{ field, value string }{
		{"class", r.Class}, {"rack", r.Rack}, {"position", r.Position}, {"chassis", r.Chassis}, {"serial", r.Serial},
	} {
		if l.value != "" && !plainLabel.MatchString(l.value) {
			bad(l.field, "write letters, digits, spaces and . _ / : - , at most 64 of them", "%.70q cannot be a label", l.value)
		}
	}
	if r.UUID != "" && !validUUID(r.UUID) {
		bad("uuid", "write it as dmidecode does: 8-4-4-4-12 hexadecimal digits", "%.70q is not a UUID", r.UUID)
	}
	if r.MinTrust != "" && !slices.Contains([]Trust{TrustTPM, TrustPort, TrustNetwork}, r.MinTrust) {
		bad("min_trust", "write tpm, port or network", "%.40q is not a level of trust", string(r.MinTrust))
	}
	return append(list, r.Power.Check()...)
}

// Differences says in words what an administrator says of a machine that was said
// otherwise before: rack r1, before r2.
func (r Registration) Differences(before Registration) []string {
	var list []string
	differ := func(what, is, was string) {
		if is != was {
			list = append(list, fmt.Sprintf("%s %s, before %s", what, cmp.Or(is, "none"), cmp.Or(was, "none")))
		}
	}
	for _, use := range []string{UseManagement, UseMessage} {
		is, was := nicsText(r.NICs, use), nicsText(before.NICs, use)
		differ(use, is, was)
	}
	list = append(list, r.Power.differences(before.Power)...)
	differ("class", r.Class, before.Class)
	differ("rack", r.Rack, before.Rack)
	differ("position", r.Position, before.Position)
	differ("chassis", r.Chassis, before.Chassis)
	differ("service", fmt.Sprint(r.Service), fmt.Sprint(before.Service))
	differ("serial", r.Serial, before.Serial)
	differ("uuid", r.UUID, before.UUID)
	differ("least trust", string(r.MinTrust), string(before.MinTrust))
	return list
}

// nicsText is what is said of the interfaces of a use.
func nicsText(list []RegisteredNIC, use string) string {
	var parts []string
	for _, n := range list {
		if n.Use == use {
			parts = append(parts, strings.TrimSuffix(n.MAC+" at "+n.Switch+" port "+n.Port, " at  port "))
		}
	}
	return strings.Join(parts, " and ")
}

func (r Registration) checkNICs() []Problem {
	var list []Problem
	uses, macs := map[string]int{}, map[string]bool{}
	for i, n := range r.NICs {
		field := fmt.Sprintf("nics[%d]", i)
		if mac, err := ParseMAC(n.MAC); err != nil || mac != n.MAC {
			list = append(list, Problem{Field: field + ".mac", Message: fmt.Sprintf("%.40q is not the address of a network interface", n.MAC), Hint: hintMAC})
		} else if macs[mac] {
			list = append(list, Problem{Field: field + ".mac", Message: mac + " stands there twice", Hint: "each interface has an address of its own"})
		}
		if n.Use == UseManagement && IsGUID(n.MAC) {
			list = append(list, Problem{Field: field + ".use", Reason: ReasonContradiction, Message: "a machine boots from Ethernet, and " + n.MAC + " is an InfiniBand port",
				Hint: "name an Ethernet interface for management, and this one for messages"})
		}
		macs[n.MAC] = true
		if n.Use != UseManagement && n.Use != UseMessage {
			list = append(list, Problem{Field: field + ".use", Message: fmt.Sprintf("%.40q is not an interface use", n.Use), Hint: "write management or message"})
		}
		uses[n.Use]++
		list = append(list, n.checkCable(field)...)
	}
	switch {
	case len(r.NICs) > mostNICs:
		list = append(list, Problem{Field: "nics", Message: fmt.Sprintf("%d interfaces are too many", len(r.NICs)), Hint: fmt.Sprintf("at most %d", mostNICs)})
	case uses[UseManagement] != 1:
		list = append(list, Problem{Field: "nics", Message: fmt.Sprintf("%d interfaces are for management", uses[UseManagement]), Hint: "name the one that the machine boots from"})
	}
	return list
}

// checkCable reports the half that is missing of what an interface is plugged into.
func (n RegisteredNIC) checkCable(field string) []Problem {
	prefix := ""
	if n.Use == UseMessage {
		prefix = "message_"
	}
	hint := func(missing, example string) string {
		missing = prefix + missing
		return fmt.Sprintf("give it, for example %s; in a table in the column %s, on the command line as --%s %s", example, missing, strings.ReplaceAll(missing, "_", "-"), example)
	}
	switch {
	case n.Switch != "" && n.Port == "":
		return []Problem{{Field: field + ".port", Reason: ReasonRequired, Message: fmt.Sprintf("the port on switch %.40q is missing", n.Switch), Hint: hint("port", "12")}}
	case n.Switch == "" && n.Port != "":
		return []Problem{{Field: field + ".switch", Reason: ReasonRequired, Message: fmt.Sprintf("the switch that has port %.40q is missing", n.Port), Hint: hint("switch", "sw1")}}
	}
	return nil
}

func validUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range strings.ToLower(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
	}
	return true
}
