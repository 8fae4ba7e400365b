package ra

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv6"
)

func server(prefix string) *Server {
	s := &Server{ifi: &net.Interface{HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}}
	if prefix != "" {
		s.Prefix = netip.MustParsePrefix(prefix)
	}
	return s
}

// TestMessage reads the advertisement byte by byte as RFC 4861 has it.
func TestMessage(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "fd00:0:0:1::/64"} {
		b := server(prefix).Message()
		m, err := icmp.ParseMessage(58, b)
		if err != nil || m.Type != ipv6.ICMPTypeRouterAdvertisement || m.Code != 0 {
			t.Fatalf("%v, %v", m, err)
		}
		if flags, lifetime := b[5], int(b[6])<<8|int(b[7]); flags != 0 || lifetime != 0 {
			t.Errorf("flags %x, router for %d s: this is no router and there is no DHCPv6", flags, lifetime)
		}
		seen := map[byte]bool{}
		for o := b[16:]; len(o) > 0; o = o[8*int(o[1]):] {
			if o[1] == 0 || len(o) < 8*int(o[1]) {
				t.Fatalf("options %x", b[16:])
			}
			seen[o[0]] = true
			if o[0] == 3 && (o[2] != 64 || o[3] != 0xc0 || netip.AddrFrom16([16]byte(o[16:32])) != netip.MustParseAddr("fd00:0:0:1::")) {
				t.Errorf("prefix %x", o)
			}
		}
		if !seen[1] || seen[3] != (prefix != "") {
			t.Errorf("options %v", seen)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{Interface: "no-such-thing"}); err == nil {
		t.Error("an interface that is not there is taken")
	}
	if _, err := New(Config{Interface: "lo", Prefix: netip.MustParsePrefix("fd00::/64")}); err == nil {
		t.Error("an interface without Ethernet is taken")
	}
}

func FuzzSolicitation(f *testing.F) {
	f.Add([]byte{133, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1}, 255, true)
	f.Add([]byte{133, 0, 0, 0, 0, 0, 0, 0}, 255, false)
	f.Add([]byte{133, 0, 0, 0, 0, 0, 0, 0, 1, 0}, 255, true)
	f.Fuzz(func(t *testing.T, b []byte, hops int, known bool) {
		from := netip.IPv6Unspecified()
		if known {
			from = netip.MustParseAddr("fe80::1")
		}
		if solicitation(b, hops, from) && (hops != 255 || b[0] != 133 || b[1] != 0 || len(b)%8 != 0) {
			t.Fatalf("%x with %d hops is answered", b, hops)
		}
	})
}

func TestSolicitations(t *testing.T) {
	t.Parallel()
	ours, none := netip.MustParseAddr("fe80::1"), netip.IPv6Unspecified()
	plain, withMAC := []byte{133, 0, 0, 0, 0, 0, 0, 0}, []byte{133, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1}
	if !solicitation(plain, 255, ours) || !solicitation(plain, 255, none) || !solicitation(withMAC, 255, ours) {
		t.Error("a good one is not answered")
	}
	if solicitation(plain, 64, ours) || solicitation(withMAC, 255, none) || solicitation(plain[:7], 255, ours) {
		t.Error("one from another link, or a forged one, is answered")
	}
}
