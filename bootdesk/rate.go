package bootdesk

import (
	"net/netip"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// An address may ask so often in a second, and so many times at once before.
const (
	rateEach   = 2.0
	rateBurst  = 20.0
	maxSources = 1 << 16
	// maxOfOne is how many hellos of one address are read and answered at the same time:
	// who sends them slowly must not keep the turns of all others.
	maxOfOne = 4
)

// rates counts what comes from each address.
type rates struct {
	clock muster.Clock
	mu    sync.Mutex
	left  map[netip.Addr]allowance
	busy  map[netip.Addr]int
}

type allowance struct {
	tokens float64
	at     time.Time
}

func newRates(c muster.Clock) *rates {
	return &rates{clock: c, left: map[netip.Addr]allowance{}, busy: map[netip.Addr]int{}}
}

// allow takes one of what an address may still ask.
func (r *rates) allow(a netip.Addr) bool {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	got, ok := r.left[a]
	if !ok {
		r.sweep(now)
		got = allowance{rateBurst, now}
	}
	got.tokens = min(rateBurst, got.tokens+now.Sub(got.at).Seconds()*rateEach)
	got.at = now
	may := got.tokens >= 1
	if may {
		got.tokens--
	}
	r.left[a] = got
	return may
}

// enter takes one of the places that an address has; leave gives it back.
func (r *rates) enter(a netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[a] >= maxOfOne {
		return false
	}
	r.busy[a]++
	return true
}

func (r *rates) leave(a netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[a]--; r.busy[a] == 0 {
		delete(r.busy, a)
	}
}

// sweep forgets who has not asked for long, once there are many.
func (r *rates) sweep(now time.Time) {
	if len(r.left) < maxSources {
		return
	}
	for a, l := range r.left {
		if now.Sub(l.at).Seconds()*rateEach >= rateBurst {
			delete(r.left, a)
		}
	}
	if len(r.left) >= maxSources {
		clear(r.left)
	}
}
