package gateway

import (
	"net/netip"
	"sync"
	"time"
)

// Strangers who fail to log in again and again are kept out for a while, by their address: for a
// second after so many, then for twice as long each time.
const (
	freeFailures   = 10
	longestPenalty = time.Minute
	forgiven       = 10 * time.Minute // after so long without a failure
	mostPenalties  = 1 << 16
)

// penalties remember who failed.
type penalties struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[netip.Addr]penalty
}

type penalty struct {
	failures    int
	last, until time.Time
}

func newPenalties(now func() time.Time) *penalties {
	return &penalties{now: now, of: map[netip.Addr]penalty{}}
}

// kept reports whether an address is kept out now.
func (p *penalties) kept(a netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now().Before(p.of[a].until)
}

// failed counts a connection that did not log in.
func (p *penalties) failed(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	one, known := p.of[a]
	if now.Sub(one.last) > forgiven {
		one = penalty{}
	}
	if !known && len(p.of) >= mostPenalties {
		p.sweep(now)
	}
	one.failures, one.last = one.failures+1, now
	if over := one.failures - freeFailures; over >= 0 {
		one.until = now.Add(min(longestPenalty, time.Second<<min(over, 10)))
	}
	p.of[a] = one
}

// sweep makes place. Where nobody is forgiven, all are: memory has a bound.
func (p *penalties) sweep(now time.Time) {
	for a, one := range p.of {
		if now.Sub(one.last) > forgiven {
			delete(p.of, a)
		}
	}
	if len(p.of) >= mostPenalties {
		clear(p.of)
	}
}

// passed forgets the failures of an address from which somebody logged in.
func (p *penalties) passed(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, a)
}
