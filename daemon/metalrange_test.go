package daemon

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster/metal/netboot/dhcp"
)

// Addresses that nobody chose lie in the lower half of the network, overlap nowhere, and
// leave out what cannot be lent: the network's own, and the server's.
func TestHalvesProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(16, 28).Draw(t, "bits")
		b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")
		own := netip.AddrFrom4([4]byte(b))
		p := netip.PrefixFrom(own, bits)
		known, guests := halves(p)
		all := append(append([]dhcp.Range(nil), known...), guests...)
		if len(known) == 0 || len(guests) == 0 {
			t.Fatalf("%s: %v, %v", p, known, guests)
		}
		for i, r := range all {
			if r.Last.Less(r.First) || !p.Masked().Contains(r.First) || !p.Masked().Contains(r.Last) || r.Contains(own) || r.Contains(p.Masked().Addr()) {
				t.Fatalf("%s: %v", p, r)
			}
			for _, o := range all[:i] {
				if r.Contains(o.First) || o.Contains(r.First) {
					t.Fatalf("%s: %v and %v", p, r, o)
				}
			}
		}
	})
}
