package dhcp

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// neighbours tells the kernel which machine has which address of the interface's
// own network, as permanent entries of its neighbour table. That saves a question
// by ARP for each machine; such entries do not count against the table's size,
// which is 1024 by default and overflows when a larger room starts; and what is
// sent to a leased address goes to the machine that has the lease, whoever else
// claims it. For one goroutine.
type neighbours struct {
	handle *netlink.Handle
	index  int
	local  netip.Prefix
	have   map[netip.Addr]MAC
}

// openNeighbours takes over the leases of the network that self is in. Without the
// right to change the table it does nothing: machines boot without, too.
func openNeighbours(s *Server) *neighbours {
	n := s.table.network(s.Address)
	ifi, err := net.InterfaceByName(s.Interface)
	if s.Mode == Proxy || n < 0 || err != nil {
		return &neighbours{}
	}
	h, err := netlink.NewHandle()
	if err != nil {
		return &neighbours{}
	}
	out := &neighbours{h, ifi.Index, s.Networks[n].Prefix, map[netip.Addr]MAC{}}
	for _, l := range s.table.Leases() {
		out.set(l)
	}
	return out
}

// set notes a lease, or that it was given back.
func (n *neighbours) set(l Lease) {
	had, ok := n.have[l.Address]
	if n.handle == nil || !n.local.Contains(l.Address) {
		return
	}
	if l.Until.IsZero() {
		// Another machine may have the address by now.
		if ok && had == l.MAC {
			n.drop(l.Address)
		}
		return
	}
	if ok && had == l.MAC {
		return
	}
	if n.handle.NeighSet(n.entry(l.Address, l.MAC)) == nil {
		n.have[l.Address] = l.MAC
	}
}

func (n *neighbours) entry(a netip.Addr, m MAC) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: n.index, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: m[:]}
}

func (n *neighbours) drop(a netip.Addr) {
	// One that somebody else removed is gone as well.
	_ = n.handle.NeighDel(n.entry(a, n.have[a]))
	delete(n.have, a)
}

// close leaves the table as it would be without this server.
func (n *neighbours) close() {
	for a := range n.have {
		n.drop(a)
	}
	if n.handle != nil {
		n.handle.Close()
	}
}
