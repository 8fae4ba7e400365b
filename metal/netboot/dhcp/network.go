package dhcp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/muster-hpc/muster"
)

// Network is one network whose machines are answered: that of the interface, or
// one behind a relay.
type Network struct {
	Prefix netip.Prefix
	// Ranges are addresses for known machines that have none of their own;
	// Discovery those for unknown ones. Without Discovery both share Ranges, and
	// whoever plugs in enough machines can use them all up.
	Ranges, Discovery []Range
	Routers           []netip.Addr
	DNS               []netip.Addr
	Domain            string
	MTU               int           // told to machines; 0: not told
	Lease             time.Duration // how long an address is lent; at least a minute
	// Relays are the only ones whose option 82 is believed. Requests of others
	// with an address in Prefix are answered, without that evidence.
	Relays []netip.Addr
}

// Range is addresses from First to Last, both included.
type Range struct{ First, Last netip.Addr }

// ParseRange reads 10.0.0.10-10.0.0.99 or one address.
func ParseRange(s string) (Range, error) {
	first, last := s, s
	for i := range s {
		if s[i] == '-' {
			first, last = s[:i], s[i+1:]
			break
		}
	}
	a, errA := netip.ParseAddr(first)
	b, errB := netip.ParseAddr(last)
	if errA != nil || errB != nil || !a.Is4() || !b.Is4() || b.Less(a) {
		return Range{}, muster.Errorf(muster.EInvalid, "%q is not a range of IPv4 addresses", s).
			WithHint("write 10.0.0.10-10.0.0.99, the lower address first")
	}
	return Range{a, b}, nil
}

// Contains says whether a is in the range.
func (r Range) Contains(a netip.Addr) bool { return !a.Less(r.First) && !r.Last.Less(a) }

// Prefixes are the networks that make up the range, in order.
func (r Range) Prefixes() []netip.Prefix {
	var out []netip.Prefix
	for at, last := uint64(number(r.First)), uint64(number(r.Last)); at <= last; {
		host := 0 // bits
		for host < 32 && at&(1<<host) == 0 && at+1<<(host+1)-1 <= last {
			host++
		}
		out = append(out, netip.PrefixFrom(address(uint32(at)), 32-host))
		at += 1 << host
	}
	return out
}

// size is how many addresses the range has.
func (r Range) size() int { return int(number(r.Last)) - int(number(r.First)) + 1 }

func number(a netip.Addr) uint32 { b := a.As4(); return binary.BigEndian.Uint32(b[:]) }

func address(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// maxRange bounds how much memory the addresses of a network take.
const maxRange = 1 << 20

// problems lists what is wrong with the network, under field names that begin
// with at.
func (n *Network) problems(at string, self netip.Addr) []muster.Problem {
	var out []muster.Problem
	say := func(field, hint, format string, args ...any) {
		out = append(out, muster.Problem{Field: at + "." + field, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if !n.Prefix.IsValid() || !n.Prefix.Addr().Is4() || n.Prefix.Bits() > 30 || n.Prefix.Bits() < 8 {
		say("prefix", "write it as 10.0.0.0/24", "%s is not an IPv4 network of /8 to /30", n.Prefix)
		return out
	}
	n.Prefix = n.Prefix.Masked()
	total := 0
	ranges := append(append([]Range(nil), n.Ranges...), n.Discovery...)
	for i, r := range ranges {
		field := fmt.Sprintf("ranges[%d]", i)
		if i >= len(n.Ranges) {
			field = fmt.Sprintf("discovery[%d]", i-len(n.Ranges))
		}
		if !r.First.Is4() || !r.Last.Is4() || r.Last.Less(r.First) || !n.Prefix.Contains(r.First) || !n.Prefix.Contains(r.Last) {
			say(field, "choose addresses of that network", "%s-%s is not inside %s", r.First, r.Last, n.Prefix)
			continue
		}
		if total += r.size(); total > maxRange {
			say(field, "make the ranges smaller", "more than %d addresses", maxRange)
		}
		broadcast := number(n.Prefix.Addr()) | (1<<(32-n.Prefix.Bits()) - 1)
		if r.Contains(n.Prefix.Addr()) || r.Contains(address(broadcast)) {
			say(field, "leave out the first and the last address of the network", "%s-%s holds an address that no machine can have", r.First, r.Last)
		}
		for _, own := range append([]netip.Addr{self}, n.Routers...) {
			if own.IsValid() && r.Contains(own) {
				say(field, "leave it out of the ranges", "%s is taken by the server or a router", own)
			}
		}
		for _, o := range ranges[:i] {
			if r.Contains(o.First) || o.Contains(r.First) {
				say(field, "let no two ranges overlap", "%s-%s overlaps %s-%s", r.First, r.Last, o.First, o.Last)
			}
		}
	}
	if n.Lease < time.Minute {
		say("lease", "an hour is usual", "%s is too short a time to lend an address for", n.Lease)
	}
	if n.MTU != 0 && (n.MTU < 576 || n.MTU > 65535) {
		say("mtu", "1500 is usual, 9000 where the whole network does", "%d is not an MTU", n.MTU)
	}
	for i, a := range append(append([]netip.Addr(nil), n.Routers...), n.DNS...) {
		if !a.Is4() {
			say("routers", "only IPv4 addresses are supported", "entry %d, %s, is not an IPv4 address", i, a)
		}
	}
	return out
}
