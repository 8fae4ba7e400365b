package muster

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// LicenceServer is a server of licences outside: the nodes of a project's clusters reach it,
// whatever outgoing traffic they have else, and nothing else by the way.
type LicenceServer struct {
	// Host is a name as the server resolves it. Nodes have the same name for it.
	Host string `json:"host"`
	Port int    `json:"port"` // of TCP
}

// Ports of licence servers: below are those of the system, and above is none.
const (
	LeastLicencePort = 1024
	MostLicencePort  = 65535
)

var hostLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ParseLicenceServer reads HOST:PORT.
//
// Errors: EInvalid, with what to write.
func ParseLicenceServer(text string) (LicenceServer, error) {
	bad := func(hint, format string, args ...any) (LicenceServer, error) {
		return LicenceServer{}, Errorf(EInvalid, format, args...).Because(ReasonBadValue).WithHint("%s", hint)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return bad("write HOST:PORT, such as licences.example.org:27000", "%.80q is not a licence server", text)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return bad("give it a name in /etc/hosts of Muster's server, and write that: programs on nodes use the same name", "%.80q is an address, and nodes need a name", host)
	}
	labels := strings.Split(host, ".")
	ok := len(host) <= 253 && host != "localhost" && !allDigits(labels[len(labels)-1])
	for _, l := range labels {
		ok = ok && hostLabel.MatchString(l)
	}
	if !ok {
		return bad("write the name of a host, such as licences.example.org", "%.80q is not the name of a host elsewhere", host)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < LeastLicencePort || n > MostLicencePort {
		return bad("write a port from 1024 to 65535", "%.20q is not the port of a licence server", port)
	}
	return LicenceServer{Host: host, Port: n}, nil
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// String is HOST:PORT.
func (l LicenceServer) String() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }
