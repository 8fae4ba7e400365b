package dhcp

import (
	"net/netip"
	"time"
)

// pool is the addresses of one network that have no fixed owner.
type pool struct {
	Network
	own, discovery queue
	reclaimed      time.Time
}

// queue is free addresses; what was given back last is given out last. It may
// name some that are in use meanwhile: who takes them looks.
type queue struct {
	ranges []Range
	list   []uint32
	in     map[uint32]bool
}

func newQueue(ranges []Range, self netip.Addr) queue {
	q := queue{ranges: ranges, in: map[uint32]bool{}}
	for _, r := range ranges {
		for i := range r.size() {
			if a := number(r.First) + uint32(i); address(a) != self {
				q.list, q.in[a] = append(q.list, a), true
			}
		}
	}
	return q
}

func newPool(n Network, self netip.Addr) *pool {
	return &pool{Network: n, own: newQueue(n.Ranges, self), discovery: newQueue(n.Discovery, self)}
}

func (q *queue) has(a netip.Addr) bool {
	for _, r := range q.ranges {
		if a.IsValid() && r.Contains(a) {
			return true
		}
	}
	return false
}

// queue is the one for machines of that standing.
func (p *pool) queue(s Standing) *queue {
	if s == Known || len(p.discovery.ranges) == 0 {
		return &p.own
	}
	return &p.discovery
}

// has says whether machines of that standing may have the address.
func (p *pool) has(a netip.Addr, s Standing) bool { return p.queue(s).has(a) }

// take removes and returns the first address that is free.
func (p *pool) take(s Standing, free func(netip.Addr) bool) (netip.Addr, bool) {
	q := p.queue(s)
	for len(q.list) > 0 {
		n := q.list[0]
		q.list = q.list[1:]
		delete(q.in, n)
		if a := address(n); free(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// put gives an address back.
func (p *pool) put(a netip.Addr) {
	for _, q := range []*queue{&p.own, &p.discovery} {
		if n := number(a); q.has(a) && !q.in[n] {
			q.list, q.in[n] = append(q.list, n), true
		}
	}
}

// next are the first free addresses of each queue, which will be given out next.
func (p *pool) next(max int) []netip.Addr {
	var out []netip.Addr
	for _, q := range []*queue{&p.own, &p.discovery} {
		for _, n := range q.list[:min(max, len(q.list))] {
			out = append(out, address(n))
		}
	}
	return out
}
