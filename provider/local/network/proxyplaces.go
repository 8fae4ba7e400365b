package network

import (
	"net/netip"
	"sync"
	"time"
)

// proxyPlaces are the requests that a proxy serves at once: so many in all, of one group
// (a cluster) and of one node. Where all are taken, a group with few gets the place of the
// one that has the most, the longest idle first: nobody keeps others out by staying.
type proxyPlaces struct {
	total, group, node int

	mu     sync.Mutex
	groups map[string]map[*proxyPlace]bool
	used   int
}

// proxyPlace is a place that a request has.
type proxyPlace struct {
	group string
	node  netip.Addr
	end   func() // ends what has it

	mu     sync.Mutex
	active time.Time // when a byte passed last
}

// touch notes that something passes.
func (p *proxyPlace) touch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = time.Now()
}

// idle is for how long nothing has passed.
func (p *proxyPlace) idle() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.active)
}

// take gives a request a place, or nil. end is called, once at most and by another
// goroutine, when the place is taken away.
func (s *proxyPlaces) take(group string, node netip.Addr, end func()) *proxyPlace {
	p := &proxyPlace{group: group, node: node, end: end, active: time.Now()}
	s.mu.Lock()
	mine := s.groups[group]
	ofNode := 0
	for q := range mine {
		if q.node == node {
			ofNode++
		}
	}
	if len(mine) >= s.group || ofNode >= s.node {
		s.mu.Unlock()
		return nil
	}
	var other *proxyPlace
	if s.used >= s.total {
		if other = s.largest(len(mine) + 1); other == nil {
			s.mu.Unlock()
			return nil
		}
		s.drop(other)
	}
	if s.groups == nil {
		s.groups = map[string]map[*proxyPlace]bool{}
	}
	if mine = s.groups[group]; mine == nil {
		mine = map[*proxyPlace]bool{}
		s.groups[group] = mine
	}
	mine[p] = true
	s.used++
	s.mu.Unlock()
	if other != nil {
		other.end()
	}
	return p
}

// largest is the longest idle place of the group that has the most, if those are more
// than so many.
func (s *proxyPlaces) largest(more int) *proxyPlace {
	var most map[*proxyPlace]bool
	for _, g := range s.groups {
		if len(g) > len(most) {
			most = g
		}
	}
	if len(most) <= more {
		return nil
	}
	var idlest *proxyPlace
	var since time.Duration
	for p := range most {
		if d := p.idle(); idlest == nil || d > since {
			idlest, since = p, d
		}
	}
	return idlest
}

// leave gives a place back, once.
func (s *proxyPlaces) leave(p *proxyPlace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(p)
}

func (s *proxyPlaces) drop(p *proxyPlace) {
	g := s.groups[p.group]
	if !g[p] {
		return // it was taken away
	}
	delete(g, p)
	if len(g) == 0 {
		delete(s.groups, p.group)
	}
	s.used--
}
