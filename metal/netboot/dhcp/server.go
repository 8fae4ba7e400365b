package dhcp

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Server answers on one interface. Make it with New, run it with Serve.
type Server struct {
	Config
	table   *Table
	heard   *heard
	notes   func(Note)
	dropped atomic.Uint64
}

// New checks the configuration and takes over the leases of before.
func New(c Config) (*Server, error) {
	c.Networks = slices.Clone(c.Networks)
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Server{Config: c, notes: c.Note, heard: newHeard()}
	if s.notes == nil {
		s.notes = func(Note) {}
	}
	s.table = newTable(c.Networks, c.Address, c.Directory.Holds)
	if c.Leases != nil {
		leases, err := c.Leases.Load()
		if err != nil {
			return nil, err
		}
		s.table.load(leases)
	}
	return s, nil
}

// Owner is the machine that has an address: by its lease, or in mode Proxy by
// what it told the site's server.
func (s *Server) Owner(a netip.Addr) (MAC, bool) {
	if s.Mode == Proxy {
		return s.heard.owner(a, s.Clock.Now())
	}
	return s.table.Owner(a, s.Clock.Now())
}

// AddressOf is the address that a machine has now, as Owner reports whose it is.
func (s *Server) AddressOf(m MAC) (netip.Addr, bool) {
	if s.Mode == Proxy {
		return s.heard.addressOf(m, s.Clock.Now())
	}
	return s.table.AddressOf(m, s.Clock.Now())
}

// Leases are the addresses that machines have.
func (s *Server) Leases() []Lease { return s.table.Leases() }

// Dropped is how many packets were not answered because they could not be read,
// came from no network that was given, or could not be sent.
func (s *Server) Dropped() uint64 { return s.dropped.Load() }

// note tells the operator.
func (s *Server) note(r *Request, a netip.Addr, stage, text string) {
	s.notes(Note{r.MAC, a, stage, text})
}

// handle decides what to answer to a packet that came to port from an address.
func (s *Server) handle(b []byte, from netip.AddrPort, port int, now time.Time) (reply, bool) {
	r, err := parse(b)
	if err != nil {
		s.dropped.Add(1)
		return reply{}, false
	}
	r.Evidence.Interface = s.Interface
	n := s.place(r, from.Addr().Unmap())
	if n < 0 {
		s.dropped.Add(1)
		return reply{}, false
	}
	v := s.Directory.Decide(r)
	if v.Standing == Forbidden {
		if r.Type == dhcpv4.MessageTypeDiscover {
			s.note(r, netip.Addr{}, "refused", orWord(v.Why, "not allowed here"))
		}
		return reply{}, false
	}
	if s.Mode == Proxy {
		return s.proxy(r, v, from.Port(), port, now)
	}
	out := reply{request: r, network: &s.Networks[n], verdict: v}
	switch r.Type {
	case dhcpv4.MessageTypeDiscover:
		return out, s.discover(&out, n, now)
	case dhcpv4.MessageTypeRequest:
		return out, s.request(&out, n, now)
	case dhcpv4.MessageTypeDecline:
		if s.table.decline(n, r.wanted, r.MAC, now) {
			s.note(r, r.wanted, "decline", "it found another machine at "+r.wanted.String())
		}
	case dhcpv4.MessageTypeRelease:
		if s.table.release(n, r.client, r.MAC) {
			s.note(r, r.client, "release", "")
		}
	case dhcpv4.MessageTypeInform:
		out.kind, out.client = ack, r.client
		s.boot(&out)
		return out, r.client.IsValid()
	}
	return reply{}, false
}

// place finds the network that a request belongs to, and what its evidence is
// worth: -1 if it is none that was given.
func (s *Server) place(r *Request, from netip.Addr) int {
	e := &r.Evidence
	at := s.Address
	switch {
	case e.Relay.IsValid():
		at = e.Link
	case r.client.IsValid() && s.table.network(r.client) >= 0:
		at = r.client // a renewal comes directly, past the relay
	}
	n := s.table.network(at)
	if n < 0 {
		return -1
	}
	switch {
	case !e.Relay.IsValid():
		e.Trusted = s.TrustSwitch
	default:
		relay := s.relay(e.Relay)
		if relay < 0 && s.table.network(e.Relay) < 0 {
			return -1
		}
		// Who writes a relay's address into a packet is not thereby the relay.
		e.Trusted = relay >= 0 && s.relay(from) >= 0
	}
	if !e.Trusted {
		e.Circuit, e.Remote = nil, nil
	}
	return n
}

// relay is the index of the network that names a relay, -1 without.
func (s *Server) relay(a netip.Addr) int {
	for i := range s.Networks {
		for _, known := range s.Networks[i].Relays {
			if known == a {
				return i
			}
		}
	}
	return -1
}

func (s *Server) discover(out *reply, n int, now time.Time) bool {
	r := out.request
	a, why := s.table.offer(n, r, out.verdict, now)
	if why != "" {
		s.note(r, netip.Addr{}, "refused", string(why))
		return false
	}
	out.kind, out.address = offer, a
	out.to = a
	s.boot(out)
	s.note(r, a, "offer", out.says())
	return true
}

// request answers the four kinds of DHCPREQUEST (RFC 2131, 4.3.2).
func (s *Server) request(out *reply, n int, now time.Time) bool {
	r := out.request
	a := r.wanted
	switch {
	case r.server.IsValid() && r.server != s.Address: // it chose another server
		s.table.withdraw(n, r.MAC)
		s.note(r, netip.Addr{}, "refused", "it took the offer of another DHCP server, "+r.server.String())
		return false
	case !r.server.IsValid() && r.client.IsValid(): // it renews
		a = r.client
	}
	if !a.IsValid() {
		return false
	}
	switch c, why := s.table.claim(n, a, r.MAC, out.verdict, now, s.Networks[n].Lease); c {
	case granted:
		out.kind, out.address, out.to = ack, a, a
		out.client = r.client
		s.boot(out)
		s.note(r, a, "ack", out.says())
		return true
	case denied:
		out.kind, out.why = nak, string(why)
		s.note(r, netip.Addr{}, "nak", string(why))
		return true
	}
	return false
}

// boot adds what the machine is to load.
func (s *Server) boot(out *reply) {
	out.file, out.why = s.Loaders.bootFile(out.request, out.verdict)
}

func orWord(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
