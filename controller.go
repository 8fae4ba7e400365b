package muster

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// usualPort is where controllers of a kind listen.
func usualPort(k PowerKind) uint16 {
	switch k {
	case PowerIPMI:
		return 623
	case PowerWOL:
		return 9 // discard: nobody needs to listen there
	}
	return 443
}

// hostName is a name that a controller may have, in lower case.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// zone is the interface of a link-local address.
var zone = regexp.MustCompile(`^[A-Za-z0-9._-]{0,15}$`)

const maxHostName = 253

// CanonicalController gives the one spelling of a controller's address: a name in lower
// case without a dot at its end, an address as netip writes it (IPv6 in brackets, an IPv4
// address within IPv6 as IPv4), and a port where it is not the usual one. Two spellings of
// one controller are the same text after that; false for what is no address.
func CanonicalController(k PowerKind, s string) (string, bool) {
	host, port := s, usualPort(k)
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		host = a.String()
	} else if h, p, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", false
		}
		host, port = h, uint16(n)
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		if !zone.MatchString(a.Zone()) {
			return "", false
		}
		host = a.Unmap().String()
		if a.Unmap().Is6() {
			host = "[" + host + "]"
		}
	} else {
		host = strings.TrimSuffix(strings.ToLower(host), ".")
		if len(host) > maxHostName || !hostName.MatchString(host) || endsInNumber(host) {
			return "", false
		}
	}
	if port != usualPort(k) {
		host += ":" + strconv.Itoa(int(port))
	}
	return host, true
}

// endsInNumber reports whether the last of several labels of a name is digits alone: an
// IPv4 address that is none, never a name (RFC 1123, 2.1; RFC 3696, 2). A label that stands
// alone may be the serial number of a machine.
func endsInNumber(s string) bool {
	i := strings.LastIndexByte(s, '.')
	return i >= 0 && strings.Trim(s[i+1:], "0123456789") == ""
}

// hostPort parts a canonical address of a controller; port is 0 for the usual one.
func hostPort(address string) (host string, port int) {
	if h, p, err := net.SplitHostPort(address); err == nil {
		port, _ = strconv.Atoi(p)
		return h, port
	}
	return strings.Trim(address, "[]"), 0
}

// bracketed puts an IPv6 address that was written without brackets into them, so that a
// URL can be read of it.
func bracketed(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return s
	}
	user, host := "", rest
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, host = rest[:i+1], rest[i+1:]
	}
	host, path, _ := strings.Cut(host, "/")
	a, err := netip.ParseAddr(host)
	if err != nil || !a.Is6() {
		return s
	}
	out := scheme + "://" + user + "[" + strings.ReplaceAll(a.String(), "%", "%25") + "]"
	if path != "" {
		out += "/" + path
	}
	return out
}

// backslashed writes the backslash of an account of a domain (DOM\admin) so that a URL
// can be read of it.
func backslashed(s string) string {
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return s
	}
	return strings.ReplaceAll(s[:i], `\`, url.PathEscape(`\`)) + s[i:]
}

// CanonicalSerial is a serial number as it is compared: people copy them from labels and
// tables in another case and with other blanks than SMBIOS has. "" for what identifies
// nothing, see IsPlaceholder.
func CanonicalSerial(s string) string {
	if IsPlaceholder(s) {
		return ""
	}
	return strings.ToUpper(strings.Join(strings.Fields(s), " "))
}

// IsPlaceholder reports whether a serial number or UUID is one of those that makers leave
// in many machines: it identifies none of them.
func IsPlaceholder(s string) bool {
	folded := strings.ToLower(strings.Join(strings.Fields(s), " "))
	switch folded {
	case "", "none", "n/a", "na", "null", "unknown", "default", "default string", "default_string", "not specified", "not applicable",
		"not available", "system serial number", "chassis serial number", "base board serial number", "serial", "serial number",
		"to be filled by o.e.m.", "to be filled by o.e.m", "o.e.m.", "oem", "enter serial", "empty", "invalid", "xxxxxxxx", "s/n",
		"0123456789", "1234567890", "123456789", "12345678", "03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009":
		return true
	}
	rest := strings.Trim(folded, "-. ")
	if rest == "" {
		return true
	}
	first := rest[:1]
	return strings.ContainsAny(first, "0fx.") && strings.Trim(strings.ReplaceAll(rest, "-", ""), first) == "" // all zeroes, all ones
}
