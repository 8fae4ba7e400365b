package provider

import (
	"net/netip"
	"strconv"
)

// MessageLink is what a machine's message NIC of a number is called inside the node; the
// first is 0.
func MessageLink(number int) string { return "msg" + strconv.Itoa(number) }

// AddressOf is the address of the message NIC of a number. The first has that of the node.
// Each further one is in a subnet of its own, for the kernel sends by the right one only
// then: of IPv6, where there is room for as many as there are, fd6d:7573:74RR:NNNN::/64 with
// the number of the NIC and that of the network, and the node's address at its end.
func (a Attachment) AddressOf(number int) netip.Prefix {
	if number == 0 || !a.Address.Addr().Is4() {
		return a.Address
	}
	node := a.Address.Addr().As4()
	b := [16]byte{0xfd, 'm', 'u', 's', 't', byte(number), byte(a.Network.Index >> 8), byte(a.Network.Index)}
	copy(b[12:], node[:])
	return netip.PrefixFrom(netip.AddrFrom16(b), 64)
}
