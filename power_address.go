package muster

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
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

// PowerKinds are all of them.
func PowerKinds() []PowerKind {
	return []PowerKind{PowerWOL, PowerIPMI, PowerRedfish, PowerScript}
}

// BootMode is how a machine's firmware starts what it loads.
type BootMode string

// Boot modes.
const (
	BootModeBIOS BootMode = "bios"
	BootModeUEFI BootMode = "uefi"
)

// BootProtocol is how a machine's firmware loads its first file from the network.
type BootProtocol string

// Boot protocols.
const (
	BootPXE  BootProtocol = "pxe"
	BootHTTP BootProtocol = "http"
)

// PowerAddress says how a machine is switched. What proves who asks (a password) is kept
// apart from it. Check reports what is wrong with one.
type PowerAddress struct {
	Kind PowerKind `json:"kind"`
	// Address is the controller's host, with a port where it is not the usual one; of a
	// script, its path; of wol, the host that the packet goes to: "" is everybody.
	Address string `json:"address,omitempty"`
	User    string `json:"user,omitempty"`
	// System is the path of one of several systems of a Redfish controller; "" where it
	// has but one.
	System string `json:"system,omitempty"`
	// Quirk names a workaround for the controller: see PowerQuirks.
	Quirk string `json:"quirk,omitempty"`
	// CertificateSHA256 pins a Redfish controller's TLS certificate, in hexadecimal.
	CertificateSHA256 string `json:"certificate_sha256,omitempty"`
	// Authority signed the certificate, where that is not pinned. In PEM.
	Authority string `json:"authority,omitempty"`
	// BootMode is the firmware's; "" where nobody said.
	BootMode BootMode `json:"boot_mode,omitempty"`
	// Boot is how the firmware loads its first file; "" is BootPXE. Only Redfish can ask
	// for BootHTTP.
	Boot BootProtocol `json:"boot,omitempty"`
	// Interface is the server's that sends magic packets as raw frames.
	Interface string `json:"interface,omitempty"`
	// Proves means that what the script calls off has no power for certain: the site
	// vouches for it.
	Proves bool `json:"proves,omitempty"`
}

// HasController reports whether a management controller switches the machine.
func (p PowerAddress) HasController() bool { return p.Kind == PowerIPMI || p.Kind == PowerRedfish }

// PowerQuirks are the workarounds that controllers of a kind may need. docs/operators/power.md
// says which need what.
func PowerQuirks(k PowerKind) []string {
	switch k {
	case PowerIPMI:
		return []string{"suite3", "administrator", "intelplus", "ipmi15", "blind-boot", "no-valid-bit", "slow-boot"}
	case PowerRedfish:
		return []string{"enabled-once", "send-mode", "no-mode", "ami-settings", "basic", "no-match", "blind-boot", "slow-boot"}
	}
	return nil
}

// Limits of what a power address holds, in bytes.
const (
	maxPowerUser    = 64
	maxIPMIUser     = 16
	maxIPMIPassword = 20
	maxPassword     = 256
	maxSystemPath   = 256
	maxInterface    = 15
	maxAuthority    = 16 << 10
	secureOnBytes   = 6
)

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// powerCheck collects what is wrong with a power address.
type powerCheck struct {
	PowerAddress
	problems []Problem
}

func (c *powerCheck) wrong(why Reason, field, hint, format string, args ...any) {
	c.problems = append(c.problems, Problem{Field: "power." + field, Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// only complains of a field that other kinds have.
func (c *powerCheck) only(field string, given bool, kinds ...PowerKind) {
	if !given || !slices.Contains(PowerKinds(), c.Kind) || slices.Contains(kinds, c.Kind) {
		return
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	c.wrong(ReasonContradiction, field, "remove it", "%s has no %s; only %s has", c.Kind, field, strings.Join(names, " or "))
}

// Check returns everything that is wrong with the address, by fields such as power.address.
// An address without problems is one that its driver takes.
func (p PowerAddress) Check() []Problem {
	c := powerCheck{PowerAddress: p}
	c.kind()
	c.address()
	c.user()
	c.certificate()
	c.boot()
	c.others()
	return c.problems
}

// CheckPassword returns what is wrong with a password for an address of this kind. It
// repeats nothing of it. An empty one is none.
func (p PowerAddress) CheckPassword(password []byte) []Problem {
	c := powerCheck{PowerAddress: p}
	wrong := func(why Reason, hint, message string) []Problem {
		return []Problem{{Field: "power_password", Reason: why, Message: message, Hint: hint}}
	}
	if len(password) > maxPassword {
		return wrong(ReasonTooLarge, "give a password of at most 256 bytes", "the password is too long")
	}
	switch c.Kind {
	case PowerIPMI:
		if len(password) > maxIPMIPassword {
			return wrong(ReasonTooLarge, "give the account a password of at most 20 bytes", "IPMI allows passwords of 20 bytes")
		}
	case PowerWOL:
		if len(password) == 0 || len(password) == secureOnBytes {
			break
		}
		if b, err := net.ParseMAC(strings.TrimSpace(string(password))); err != nil || len(b) != secureOnBytes {
			return wrong(ReasonBadValue, "write it as six hexadecimal numbers: 01:23:45:67:89:ab", "the SecureOn password has not six bytes")
		}
	}
	return nil
}

func (c *powerCheck) kind() {
	if slices.Contains(PowerKinds(), c.Kind) {
		return
	}
	const hint = "write wol, ipmi, redfish or script"
	if c.Kind == "" {
		c.wrong(ReasonRequired, "kind", hint, "how it is switched is missing")
		return
	}
	c.wrong(ReasonBadValue, "kind", hint, "%.40q is not a kind of power control", string(c.Kind))
}

func (c *powerCheck) address() {
	switch c.Kind {
	case PowerIPMI, PowerRedfish, PowerWOL:
		if c.Address == "" {
			if c.Kind != PowerWOL {
				c.wrong(ReasonRequired, "address", "name the controller: "+string(c.Kind)+"://admin@10.0.0.11", "the address of the controller is missing")
			}
		} else if _, ok := CanonicalController(c.Kind, c.Address); !ok {
			c.wrong(ReasonBadValue, "address", "write a host name or an address, with :port where it is not the usual one", "%.70q is not a host", c.Address)
		}
	case PowerScript:
		switch {
		case c.Address == "":
			c.wrong(ReasonRequired, "address", "write the path of the program on the server: /etc/muster/power", "the program is missing")
		case !strings.HasPrefix(c.Address, "/") || strings.ContainsFunc(c.Address, unprintable):
			c.wrong(ReasonBadValue, "address", "write its absolute path on the server: /etc/muster/power", "%.70q is not the path of a program", c.Address)
		}
	}
}

func (c *powerCheck) user() {
	c.only("user", c.User != "", PowerIPMI, PowerRedfish, PowerScript)
	if c.HasController() && c.User == "" {
		c.wrong(ReasonRequired, "user", "name the account that may switch the machine", "the account is missing")
	}
	switch {
	case strings.ContainsFunc(c.User, unprintable):
		c.wrong(ReasonBadValue, "user", "at most 64 printable characters", "that is not the name of an account")
	case c.Kind == PowerIPMI && len(c.User) > maxIPMIUser:
		c.wrong(ReasonTooLarge, "user", "give the controller an account with a shorter name", "IPMI allows names of 16 bytes, and %.40q has %d", c.User, len(c.User))
	case len(c.User) > maxPowerUser:
		c.wrong(ReasonTooLarge, "user", "at most 64 printable characters", "the name of the account has %d bytes", len(c.User))
	}
}

func (c *powerCheck) certificate() {
	c.only("certificate_sha256", c.CertificateSHA256 != "", PowerRedfish)
	c.only("authority", c.Authority != "", PowerRedfish)
	if c.Kind == PowerRedfish && c.CertificateSHA256 == "" && c.Authority == "" {
		c.wrong(ReasonRequired, "certificate_sha256", "pin the SHA-256 of the controller's certificate, or name who signed it in authority: see docs/operators/power.md",
			"nothing says which certificate the controller has")
	}
	if c.CertificateSHA256 != "" && !sha256Hex.MatchString(c.CertificateSHA256) {
		c.wrong(ReasonBadValue, "certificate_sha256", "write its 64 hexadecimal digits, as openssl x509 -noout -fingerprint -sha256 prints them, or the certificate in PEM", "that is not the SHA-256 of a certificate")
	}
	if c.Authority == "" {
		return
	}
	if _, err := c.authorities(); err != nil {
		c.problems = append(c.problems, err.In("power.authority"))
	}
}

// authorities are the certificates of those who sign, each in DER.
func (p PowerAddress) authorities() (list [][]byte, wrong *Error) {
	const hint = "give certificates in PEM: they begin with -----BEGIN CERTIFICATE-----"
	rest := []byte(p.Authority)
	if len(rest) > maxAuthority {
		return nil, Errorf(EInvalid, "%d bytes are more than certificates have", len(rest)).Because(ReasonTooLarge).WithHint("%s", hint)
	}
	for len(strings.TrimSpace(string(rest))) > 0 {
		block, more := pem.Decode(rest)
		if block == nil {
			break
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return nil, Errorf(EInvalid, "that holds a private key").Because(ReasonPrivateKey).WithHint("%s, and nobody else needs the key", hint)
		}
		if block.Type != "CERTIFICATE" {
			return nil, Errorf(EInvalid, "a %.40q is not a certificate", block.Type).Because(ReasonBadCertificate).WithHint("%s", hint)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, Errorf(EInvalid, "its certificate %d cannot be read", len(list)+1).Because(ReasonBadCertificate).WithHint("%s", hint).Wrap(err)
		}
		list, rest = append(list, block.Bytes), more
	}
	if len(list) == 0 {
		return nil, Errorf(EInvalid, "that is not a certificate in PEM").Because(ReasonBadCertificate).WithHint("%s", hint)
	}
	return list, nil
}

func (c *powerCheck) boot() {
	c.only("boot_mode", c.BootMode != "", PowerIPMI, PowerRedfish)
	if c.BootMode != "" && c.BootMode != BootModeBIOS && c.BootMode != BootModeUEFI {
		c.wrong(ReasonBadValue, "boot_mode", "write bios or uefi, or leave it out", "%.40q is not a boot mode", string(c.BootMode))
	}
	switch c.Boot {
	case "", BootPXE:
	case BootHTTP:
		if c.Kind != PowerRedfish && slices.Contains(PowerKinds(), c.Kind) {
			c.wrong(ReasonContradiction, "boot", "write pxe, or leave it out", "%s cannot have a machine boot by HTTP; only redfish can", c.Kind)
		}
		if c.BootMode == BootModeBIOS {
			c.wrong(ReasonContradiction, "boot", "write boot_mode uefi, or boot pxe", "a BIOS cannot boot by HTTP")
		}
	default:
		c.wrong(ReasonBadValue, "boot", "write pxe or http", "there is no way to boot %.40q", string(c.Boot))
	}
}

func (c *powerCheck) others() {
	c.only("system", c.System != "", PowerRedfish)
	if s := c.System; s != "" && (!isSystemPath(s) || strings.ContainsAny(s, "?#\\ ") || strings.Contains(s, "..") || strings.ContainsFunc(s, unprintable)) {
		c.wrong(ReasonBadValue, "system", "write its path: /redfish/v1/Systems/1", "%.70q is not the path of a system", s)
	}
	c.only("quirk", c.Quirk != "", PowerIPMI, PowerRedfish)
	if names := PowerQuirks(c.Kind); c.Quirk != "" && len(names) > 0 && !slices.Contains(names, c.Quirk) {
		c.wrong(ReasonBadValue, "quirk", "write one of "+strings.Join(names, ", ")+", or leave it out", "%s has no quirk %.40q", c.Kind, c.Quirk)
	}
	c.only("interface", c.Interface != "", PowerWOL)
	if i := c.Interface; len(i) > maxInterface || strings.ContainsAny(i, "/ \t\n") || strings.ContainsFunc(i, unprintable) {
		c.wrong(ReasonBadValue, "interface", "name one of this server: eno2", "%.40q is not the name of an interface", i)
	} else if i != "" && c.Kind == PowerWOL && c.Address != "" {
		c.wrong(ReasonContradiction, "interface", "keep one of them", "a packet goes out of an interface, or to an address")
	}
	c.only("proves", c.Proves, PowerScript)
}

// isSystemPath reports whether a text is the path of a Redfish system (DSP0266, 6.4), with
// no slash at its end.
func isSystemPath(s string) bool {
	name, ok := strings.CutPrefix(s, "/redfish/v1/Systems/")
	return ok && name != "" && !strings.HasSuffix(name, "/") && len(s) <= maxSystemPath
}

func unprintable(r rune) bool { return r < ' ' || r == 0x7f }

// Endpoint is the host and the port of a controller, or of what a magic packet is sent
// to: the kind's usual port where the address has none.
func (p PowerAddress) Endpoint() (host string, port int) {
	address, ok := CanonicalController(p.Kind, p.Address)
	if !ok {
		address = p.Address
	}
	host, port = hostPort(address)
	if port == 0 {
		port = int(usualPort(p.Kind))
	}
	return host, port
}

// differences says in words what was said otherwise before.
func (p PowerAddress) differences(before PowerAddress) (list []string) {
	for _, d := range []struct{ what, is, was string }{
		{"power", p.String(), before.String()},
		{"power quirk", p.Quirk, before.Quirk},
		{"power certificate", p.CertificateSHA256, before.CertificateSHA256},
		{"power authority", p.AuthorityName(), before.AuthorityName()},
		{"boot mode", string(p.BootMode), string(before.BootMode)},
		{"boot", string(p.Boot), string(before.Boot)},
		{"power interface", p.Interface, before.Interface},
		{"power proves", fmt.Sprint(p.Proves), fmt.Sprint(before.Proves)},
	} {
		if d.is != d.was {
			list = append(list, fmt.Sprintf("%s %s, before %s", d.what, cmp.Or(d.is, "none"), cmp.Or(d.was, "none")))
		}
	}
	return list
}

// AuthorityName distinguishes authorities in few characters; "" where there is none.
func (p PowerAddress) AuthorityName() string {
	if p.Authority == "" {
		return ""
	}
	of := []byte(p.Authority)
	if list, err := p.authorities(); err == nil {
		of = slices.Concat(list...)
	}
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:8])
}

// ParsePowerAddress reads how a machine is switched as people write it in one word:
// wol, wol://10.0.0.255, ipmi://admin@10.0.0.11, redfish://admin@bmc1:8443,
// script:///etc/muster/power. A password in it is refused.
func ParsePowerAddress(s string) (PowerAddress, error) {
	if s == string(PowerWOL) {
		return PowerAddress{Kind: PowerWOL}, nil
	}
	bad := func(hint string) (PowerAddress, error) {
		return PowerAddress{}, Errorf(EInvalid, "that does not say how a machine is switched").Because(ReasonBadPowerAddress).
			WithHint("%s", cmp.Or(hint, "write wol, ipmi://USER@HOST, redfish://USER@HOST or script:///PATH"))
	}
	if host, ok := CanonicalController(PowerIPMI, s); ok && strings.Contains(host, ".") {
		return bad("say what the controller speaks, and the account: ipmi://USER@" + host + " or redfish://USER@" + host)
	}
	u, err := url.Parse(backslashed(bracketed(s)))
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return bad("") // the error of url.Parse may quote a password
	}
	if _, secret := u.User.Password(); secret {
		return bad("leave the password out: it is given with --power-password-file, in the column power_password, or as password or password_file beside power")
	}
	p := PowerAddress{Kind: PowerKind(u.Scheme), Address: u.Host, User: u.User.Username()}
	switch p.Kind {
	case PowerWOL:
		if u.User != nil || strings.Trim(u.Path, "/") != "" || u.Opaque != "" {
			return bad("write wol, or wol://HOST if the packet goes to an address")
		}
		if u.Host == "" {
			return p, nil
		}
	case PowerScript:
		if u.Host != "" {
			return bad("three slashes: script:///etc/muster/power")
		}
		if u.Opaque != "" {
			return bad("the path of the program is absolute, with three slashes: script:///etc/muster/power")
		}
		p.Address = u.Path
		return p, nil
	case PowerIPMI, PowerRedfish:
		if path := strings.TrimSuffix(u.Path, "/"); path != "" {
			if p.Kind != PowerRedfish || !isSystemPath(path) {
				return bad("what follows the host is the path of a Redfish system: /redfish/v1/Systems/1")
			}
			p.System = path
		}
	default:
		return bad("")
	}
	address, ok := CanonicalController(p.Kind, u.Host)
	if strings.Contains(u.Host, "{") { // of a rule, which fills it in
		address, ok = u.Host, true
	}
	if !ok {
		return bad("the host is a name or an IP address, with a port where it is not the usual one")
	}
	p.Address = address
	return p, nil
}

// String is what ParsePowerAddress reads. It holds no secret.
func (p PowerAddress) String() string {
	if !slices.Contains(PowerKinds(), p.Kind) || p.Kind == PowerWOL && p.Address == "" {
		return string(p.Kind)
	}
	u := url.URL{Scheme: string(p.Kind), Host: p.Address, Path: p.System}
	if p.Kind == PowerScript {
		u.Host, u.Path = "", p.Address
	}
	if p.User != "" {
		u.User = url.User(p.User)
	}
	return u.String()
}
