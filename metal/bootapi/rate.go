package bootapi

import (
	"net/netip"
	"sync"
	"time"
)

// An address may ask so often, and so many times at once before.
const (
	rateEvery  = time.Second / 2
	rateBurst  = 20
	maxSources = 1 << 16
	// maxOfOne is how many hellos of one address are read and answered at the same time:
	// who sends them slowly must not keep the turns of all others.
	maxOfOne = 4
)

// busy counts the hellos of each address that are not answered yet.
type busy struct {
	mu sync.Mutex
	of map[netip.Addr]int
}

// enter takes one of the places that an address has; leave gives it back.
func (b *busy) enter(a netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[a] >= maxOfOne {
		return false
	}
	b.of[a]++
	return true
}

func (b *busy) leave(a netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[a]--; b.of[a] == 0 {
		delete(b.of, a)
	}
}
