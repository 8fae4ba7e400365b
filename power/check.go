package power

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nearest"
)

// Limits of what IPMI can carry, in bytes.
const (
	maxIPMIUser = 16
	maxHost     = 253
)

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// checker collects the problems of an address.
type checker struct{ problems []muster.Problem }

func (c *checker) add(field, hint, message string) {
	c.problems = append(c.problems, muster.Problem{Field: field, Message: message, Hint: hint})
}

// Check returns EINVALID with every problem of the address at once, or nil.
// What only a driver knows (its quirks) is checked by Drivers.Open, too.
func (a Address) Check() error {
	if c := a.check(); len(c.problems) > 0 {
		return invalid(c.problems)
	}
	return nil
}

func invalid(problems []muster.Problem) error {
	e := muster.Errorf(muster.EInvalid, "the machine's power address is wrong").Because(muster.ReasonBadPowerAddress).WithHint("see docs/power.md for what each kind needs")
	return e.Listing(problems)
}

func (a Address) check() *checker {
	c := &checker{}
	switch a.Kind {
	case KindWOL:
		if len(a.MACs) == 0 {
			c.add("macs", "name the machine's network interfaces", "Wake-on-LAN needs at least one")
		}
	case KindIPMI, KindRedfish:
		if a.Host == "" {
			c.add("host", "", "the controller's name or address is missing")
		}
		if a.User == "" {
			c.add("user", "", "the controller's account is missing")
		}
		if a.Secret == nil {
			c.add("secret", "name the file that holds it", "the controller's password is missing")
		}
	case KindScript:
	default:
		c.add("kind", hintKind(string(a.Kind)), "there is no kind "+strconv.Quote(clip(string(a.Kind))))
	}
	a.checkCommon(c)
	a.checkRedfish(c)
	a.checkOthers(c)
	return c
}

func (a Address) checkCommon(c *checker) {
	if a.Host != "" && !validHost(a.Host) {
		c.add("host", "write a name or an address, without a port", strconv.Quote(clip(a.Host))+" is neither a name nor an address")
	}
	if a.Port < 0 || a.Port > 65535 {
		c.add("port", "1 to 65535", "there is no port "+itoa(a.Port))
	}
	if strings.ContainsFunc(a.User, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		c.add("user", "", "it holds control characters")
	}
	if a.Kind == KindIPMI && len(a.User) > maxIPMIUser {
		c.add("user", "", "IPMI allows 16 bytes")
	}
	seen := map[string]bool{}
	for i, m := range a.MACs {
		field := "macs[" + itoa(i) + "]"
		mac, err := net.ParseMAC(m)
		switch {
		case err != nil || len(mac) != 6:
			c.add(field, "write it as 52:54:00:12:34:56", strconv.Quote(clip(m))+" is no Ethernet address")
		case mac[0]&1 != 0:
			c.add(field, "", m+" is an address of many, not of one interface")
		case seen[mac.String()]:
			c.add(field, "", m+" is there twice")
		default:
			seen[mac.String()] = true
		}
	}
	switch a.Boot {
	case "", "pxe":
	case "http":
		a.only(c, "boot", "http", KindRedfish)
	default:
		c.add("boot", "pxe or http", "there is no way to boot "+strconv.Quote(clip(a.Boot)))
	}
}

func (a Address) checkRedfish(c *checker) {
	a.only(c, "certificate", a.Certificate, KindRedfish)
	a.only(c, "authority", a.Authority, KindRedfish)
	a.only(c, "system", a.System, KindRedfish)
	if a.Kind != KindRedfish {
		return
	}
	if a.Certificate == "" && a.Authority == "" {
		c.add("certificate", "pin the controller's certificate (sha256:...) or name its authority", "nothing says whose certificate the controller has")
	}
	if _, ok := a.Pin(); a.Certificate != "" && !ok {
		c.add("certificate", "sha256: and 64 hexadecimal digits", "it is no SHA-256 digest")
	}
	if a.Authority != "" {
		if block, _ := pem.Decode([]byte(a.Authority)); block == nil || block.Type != "CERTIFICATE" {
			c.add("authority", "begin with -----BEGIN CERTIFICATE-----", "it is no certificate in PEM")
		}
	}
	if a.System != "" && (!strings.HasPrefix(a.System, "/") || strings.HasPrefix(a.System, "//") || strings.ContainsAny(a.System, "?#\\ ") || strings.Contains(a.System, "..")) {
		c.add("system", "write a path: /redfish/v1/Systems/1", strconv.Quote(clip(a.System))+" is no path of a system")
	}
}

func (a Address) checkOthers(c *checker) {
	a.only(c, "interface", a.Interface, KindWOL)
	if strings.ContainsAny(a.Interface, "/ \t\n") || len(a.Interface) > 15 {
		c.add("interface", "", "there can be no interface "+strconv.Quote(clip(a.Interface)))
	}
	a.only(c, "program", a.Program, KindScript)
	if a.Proves {
		a.only(c, "proves", "true", KindScript)
	}
	if a.Kind == KindScript && !filepath.IsAbs(a.Program) {
		c.add("program", "give its absolute path", "the site's program is missing or has no absolute path")
	}
}

// only complains of a field that another kind has.
func (a Address) only(c *checker, field, value string, kind Kind) {
	if value != "" && a.Kind != kind {
		c.add(field, "remove it", "only kind "+string(kind)+" has it")
	}
}

// Pin is the digest of the certificate that the controller must show.
func (a Address) Pin() (sum [sha256.Size]byte, ok bool) {
	digits, found := strings.CutPrefix(a.Certificate, "sha256:")
	if !found {
		return sum, false
	}
	b, err := hex.DecodeString(strings.ReplaceAll(digits, ":", ""))
	if err != nil || len(b) != len(sum) {
		return sum, false
	}
	return [sha256.Size]byte(b), true
}

func validHost(h string) bool {
	if _, err := netip.ParseAddr(h); err == nil {
		return true
	}
	return len(h) <= maxHost && hostName.MatchString(h)
}

func hintKind(s string) string {
	kinds := []string{string(KindWOL), string(KindIPMI), string(KindRedfish), string(KindScript)}
	if near := nearest.Of(s, kinds); near != "" {
		return "did you mean " + near + "?"
	}
	return strings.Join(kinds, ", ")
}

// clip shortens what others wrote before it is shown.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40]
	}
	return s
}

func itoa(n int) string { return strconv.Itoa(n) }
