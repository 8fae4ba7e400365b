package provider

import (
	"net/netip"
	"testing"
)

// No two NICs of any two nodes have one address, and each NIC of a node a subnet of its own.
func TestAddressOf(t *testing.T) {
	t.Parallel()
	seen, links := map[netip.Addr]bool{}, map[string]bool{}
	for network := 1; network <= 3; network++ {
		for node := range 3 {
			a := Attachment{Network: Network{Index: 1000 * network}, Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128, byte(16 * network), byte(10 + node)}), 20)}
			if a.AddressOf(0) != a.Address {
				t.Error("the first NIC has another address than its node")
			}
			nets := map[netip.Prefix]bool{}
			for nic := range 4 {
				p := a.AddressOf(nic)
				if seen[p.Addr()] || nets[p.Masked()] || nic > 0 && (!p.Addr().IsPrivate() || p.Bits() != 64) {
					t.Errorf("network %d, node %d, NIC %d: %v", network, node, nic, p)
				}
				seen[p.Addr()], nets[p.Masked()], links[MessageLink(nic)] = true, true, true
			}
		}
	}
	if len(links) != 4 || !links["msg0"] || !links["msg3"] {
		t.Error(links)
	}
	same := func(network, node int) netip.Prefix {
		return Attachment{Network: Network{Index: network}, Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128, 16, byte(node)}), 20)}.AddressOf(1).Masked()
	}
	if same(1, 10) != same(1, 11) || same(1, 10) == same(2, 10) {
		t.Error("nodes of one network do not share it, or those of two do")
	}
}
