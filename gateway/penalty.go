package gateway

import (
	"sync"
	"time"
)

// Who fails to log in again and again is penalized for a while: for a second after so many failures,
// then for twice as long each time. A failure is a connection, however many keys were offered.
const (
	freeFailures   = 10
	longestPenalty = time.Minute
	forgiven       = 10 * time.Minute // after so long without a failure
	mostPenalties  = 1 << 16
)

// penalties remember who failed: an address, or a user name.
type penalties[K comparable] struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[K]penalty
}

type penalty struct {
	failures    int
	last, until time.Time
}

func newPenalties[K comparable](now func() time.Time) *penalties[K] {
	return &penalties[K]{now: now, of: map[K]penalty{}}
}

// kept reports whether somebody is penalized now.
func (p *penalties[K]) kept(a K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now().Before(p.of[a].until)
}

// failed counts a connection that did not log in.
func (p *penalties[K]) failed(a K) {
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
func (p *penalties[K]) sweep(now time.Time) {
	for a, one := range p.of {
		if now.Sub(one.last) > forgiven {
			delete(p.of, a)
		}
	}
	if len(p.of) >= mostPenalties {
		clear(p.of)
	}
}

// passed forgets the failures of who logged in.
func (p *penalties[K]) passed(a K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, a)
}
