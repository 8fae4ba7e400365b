package network

import (
	"net"
	"net/netip"
)

// inward lists networks that are somebody's inside, or lead there.
func inward() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range append(private(),
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8") {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// PublicAddress reports whether an address belongs to the outside world: not
// private, not local, not one of this host's own.
func PublicAddress(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() {
		return false
	}
	for _, p := range inward() {
		if p.Contains(a) {
			return false
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, o := range own {
		if n, ok := o.(*net.IPNet); ok {
			if x, ok := netip.AddrFromSlice(n.IP); ok && x.Unmap() == a {
				return false
			}
		}
	}
	return true
}
