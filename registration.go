package muster

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
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
	// LeastTrust is the least that must vouch for it; "": what [Registration.Demanded]
	// says.
	LeastTrust Trust `json:"least-trust,omitempty"`

	// Muster fills in the rest.

	// EndorsementKey is the public key of its TPM (PKIX, DER), enrolled when it was
	// approved.
	EndorsementKey []byte `json:"endorsement-key,omitempty"`
	// ShownKey is the endorsement key that it showed last. It proves nothing: it is
	// what is enrolled when an administrator approves the machine.
	ShownKey []byte `json:"shown-endorsement-key,omitempty"`
	Facts    *Facts `json:"facts,omitempty"` // as it told them last
	// Accepted are the facts before Changed, until an administrator accepts what
	// changed; nil: nothing did.
	Accepted *Facts    `json:"accepted-facts,omitempty"`
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
	// ByHand is what administrators are asked to do, and have answered; nil: nothing.
	ByHand *ByHand `json:"by-hand,omitempty"`
}

// RegistrationState says what may become of a bare machine.
type RegistrationState string

// States of registrations.
const (
	RegistrationWaiting   RegistrationState = "waiting"   // it came by itself, and waits for an administrator
	RegistrationApproved  RegistrationState = "approved"  // it is a machine of the site
	RegistrationForbidden RegistrationState = "forbidden" // nothing is answered to it
)

// RegisteredNIC is a network interface of a bare machine.
type RegisteredNIC struct {
	MAC string `json:"mac"` // as ParseMAC writes it
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

// PowerKind is a way to switch a machine.
type PowerKind string

// Kinds of power.
const (
	PowerWOL     PowerKind = "wol"     // a magic packet wakes it; nothing but itself switches it off
	PowerIPMI    PowerKind = "ipmi"    // a management controller that speaks IPMI 2.0
	PowerRedfish PowerKind = "redfish" // a management controller that speaks Redfish
	PowerScript  PowerKind = "script"  // a program of the site
)

// PowerAddress says how a machine is switched. What proves who asks (a password) is kept
// apart from it.
type PowerAddress struct {
	Kind PowerKind `json:"kind"`
	// Address is the controller's host, with a port where it is not the usual one;
	// of a script, its path.
	Address string `json:"address,omitempty"`
	User    string `json:"user,omitempty"`
	// System is the path of one of several systems of a Redfish controller; "" where it
	// has but one.
	System string `json:"system,omitempty"`
	// Quirk names a maker whose controllers need other manners.
	Quirk string `json:"quirk,omitempty"`
	// CertificateSHA256 pins a controller's TLS certificate, in hexadecimal.
	CertificateSHA256 string `json:"certificate-sha256,omitempty"`
}

// ParseMAC writes an Ethernet address as Muster does: aa:bb:cc:dd:ee:ff. It takes
// what people write: dashes, dots, upper case.
func ParseMAC(s string) (string, error) {
	bad := func(why string) (string, error) {
		return "", Errorf(EInvalid, "%.40q is not the address of a network interface: %s", s, why).Because(ReasonBadAddress).WithHint("write it as 52:54:00:12:34:56")
	}
	m, err := net.ParseMAC(strings.TrimSpace(s))
	switch {
	case err != nil:
		return bad("it cannot be read")
	case len(m) != 6:
		return bad("it has not six bytes")
	case m[0]&1 != 0:
		return bad("it is one of a group")
	case m.String() == "00:00:00:00:00:00":
		return bad("it is nobody's")
	}
	return m.String(), nil
}

var (
	machineName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	plainLabel  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9 ._/:-]{0,62}[A-Za-z0-9])?$`)
	sha256Hex   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// mostNICs bounds the interfaces of one machine.
const mostNICs = 32

// Demanded is the least that must vouch for the machine before it becomes a node,
// where the site asks for this much of all: what its registration says, else its TPM
// if that is enrolled. One that keeps silent may be another machine.
func (r Registration) Demanded(site Trust) Trust {
	switch {
	case r.LeastTrust != "":
		return r.LeastTrust
	case len(r.EndorsementKey) > 0:
		return TrustTPM
	}
	return site
}

// Check tells everything that is wrong with what an administrator said of a
// machine. Its MACs are those of ParseMAC.
func (r Registration) Check() []Problem {
	var list []Problem
	bad := func(field, hint, format string, args ...any) {
		list = append(list, Problem{Field: field, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if !machineName.MatchString(string(r.ID)) {
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
	if r.LeastTrust != "" && !slices.Contains([]Trust{TrustTPM, TrustPort, TrustNetwork}, r.LeastTrust) {
		bad("least-trust", "write tpm, port or network", "%.40q is not a level of trust", string(r.LeastTrust))
	}
	return append(list, r.Power.check()...)
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
	differ("power", r.Power.String(), before.Power.String())
	differ("power quirk", r.Power.Quirk, before.Power.Quirk)
	differ("power certificate", r.Power.CertificateSHA256, before.Power.CertificateSHA256)
	differ("class", r.Class, before.Class)
	differ("rack", r.Rack, before.Rack)
	differ("position", r.Position, before.Position)
	differ("chassis", r.Chassis, before.Chassis)
	differ("service", fmt.Sprint(r.Service), fmt.Sprint(before.Service))
	differ("serial", r.Serial, before.Serial)
	differ("uuid", r.UUID, before.UUID)
	differ("least trust", string(r.LeastTrust), string(before.LeastTrust))
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
			list = append(list, Problem{Field: field + ".mac", Message: fmt.Sprintf("%.40q is not the address of a network interface", n.MAC), Hint: "write it as 52:54:00:12:34:56"})
		} else if macs[mac] {
			list = append(list, Problem{Field: field + ".mac", Message: mac + " stands there twice", Hint: "each interface has an address of its own"})
		}
		macs[n.MAC] = true
		if n.Use != UseManagement && n.Use != UseMessage {
			list = append(list, Problem{Field: field + ".use", Message: fmt.Sprintf("%.40q is no use of an interface", n.Use), Hint: "write management or message"})
		}
		uses[n.Use]++
		if (n.Switch == "") != (n.Port == "") {
			list = append(list, Problem{Field: field + ".port", Message: "a port belongs to a switch", Hint: "give both, or neither"})
		}
	}
	switch {
	case len(r.NICs) > mostNICs:
		list = append(list, Problem{Field: "nics", Message: fmt.Sprintf("%d interfaces are too many", len(r.NICs)), Hint: fmt.Sprintf("at most %d", mostNICs)})
	case uses[UseManagement] != 1:
		list = append(list, Problem{Field: "nics", Message: fmt.Sprintf("%d interfaces are for management", uses[UseManagement]), Hint: "name the one that the machine boots from"})
	}
	return list
}

func (p PowerAddress) check() []Problem {
	var list []Problem
	bad := func(field, hint, format string, args ...any) {
		list = append(list, Problem{Field: "power." + field, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	switch p.Kind {
	case PowerWOL:
		if p.Address != "" || p.User != "" {
			bad("address", "leave it out: the magic packet goes to the machine's MAC", "wol has no address and no user")
		}
	case PowerIPMI, PowerRedfish:
		if p.Address == "" {
			bad("address", "name the controller: "+string(p.Kind)+"://admin@10.0.0.11", "the address of the controller is missing")
		} else if _, ok := CanonicalController(p.Kind, p.Address); !ok {
			bad("address", "write a host name or an address, with :port where it is not the usual one", "%.70q is no host", p.Address)
		}
		if p.User == "" {
			bad("user", "name the account that may switch the machine", "the account is missing")
		}
	case PowerScript:
		if !strings.HasPrefix(p.Address, "/") || strings.ContainsAny(p.Address, "\x00\n") {
			bad("address", "write the path of the program on the server: /etc/muster/power", "%.70q is not the path of a program", p.Address)
		}
	default:
		bad("kind", "write wol, ipmi, redfish or script", "%.40q is no way to switch a machine", string(p.Kind))
	}
	if p.CertificateSHA256 != "" && !sha256Hex.MatchString(p.CertificateSHA256) {
		bad("certificate-sha256", "write 64 hexadecimal digits, small letters", "that is not a SHA-256")
	}
	if len(p.User) > 64 || strings.ContainsFunc(p.User, func(r rune) bool { return r < ' ' }) {
		bad("user", "at most 64 printable characters", "that is not the name of an account")
	}
	return list
}

// ParsePowerAddress reads how a machine is switched as people write it in one word:
// wol, ipmi://admin@10.0.0.11, redfish://admin@bmc1:8443, script:///etc/muster/power.
// A password in it is refused.
func ParsePowerAddress(s string) (PowerAddress, error) {
	if s == string(PowerWOL) {
		return PowerAddress{Kind: PowerWOL}, nil
	}
	bad := func(hint string) (PowerAddress, error) {
		return PowerAddress{}, Errorf(EInvalid, "that does not say how a machine is switched").Because(ReasonBadPowerAddress).
			WithHint("%s", cmp.Or(hint, "write wol, ipmi://USER@HOST, redfish://USER@HOST or script:///PATH"))
	}
	u, err := url.Parse(backslashed(bracketed(s)))
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return bad("") // the error of url.Parse may quote a password
	}
	if _, secret := u.User.Password(); secret {
		return bad("leave the password out: it is given with --power-password-file, or in the column power-password")
	}
	p := PowerAddress{Kind: PowerKind(u.Scheme), Address: u.Host, User: u.User.Username()}
	switch p.Kind {
	case PowerWOL:
		if u.Host != "" || strings.Trim(u.Path, "/") != "" {
			return bad("wol has no address: write wol")
		}
	case PowerScript:
		if u.Host != "" {
			return bad("three slashes: script:///etc/muster/power")
		}
		p.Address = u.Path
	case PowerIPMI, PowerRedfish:
		if path := strings.TrimSuffix(u.Path, "/"); path != "" {
			if p.Kind != PowerRedfish || !strings.HasPrefix(path, "/redfish/v1/Systems/") || len(path) > 256 {
				return bad("what follows the host is the path of a Redfish system: /redfish/v1/Systems/1")
			}
			p.System = path
		}
		address, ok := CanonicalController(p.Kind, u.Host)
		if strings.Contains(u.Host, "{") { // of a rule, which fills it in
			address, ok = u.Host, true
		}
		if !ok {
			return bad("the host is a name or an IP address, with a port where it is not the usual one")
		}
		p.Address = address
	default:
		return bad("")
	}
	return p, nil
}

// String is what ParsePowerAddress reads. It holds no secret.
func (p PowerAddress) String() string {
	switch p.Kind {
	case PowerScript:
		return "script://" + p.Address
	case PowerIPMI, PowerRedfish:
		u := url.URL{Scheme: string(p.Kind), Host: p.Address, Path: p.System}
		if p.User != "" {
			u.User = url.User(p.User)
		}
		return u.String()
	}
	return string(p.Kind)
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
