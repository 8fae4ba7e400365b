package agents

import (
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// limits gives each key so many requests a second, with a burst.
type limits struct {
	rate, burst float64
	clock       muster.Clock

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

// maxBuckets bounds what strangers can make the server remember.
const maxBuckets = 20000

func newLimits(rate, burst float64, clock muster.Clock) *limits {
	return &limits{rate: rate, burst: burst, clock: clock, buckets: map[string]*bucket{}}
}

// allow takes one request from the key's bucket; false when it is empty.
func (l *limits) allow(key string) bool {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[key]
	if b == nil {
		if len(l.buckets) >= maxBuckets {
			l.sweep(now)
		}
		b = &bucket{tokens: l.burst, at: now}
		l.buckets[key] = b
	}
	// A clock that was set back takes nothing away.
	b.tokens = min(l.burst, b.tokens+max(0, now.Sub(b.at).Seconds())*l.rate)
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// sweep forgets keys whose bucket is full again.
func (l *limits) sweep(now time.Time) {
	for k, b := range l.buckets {
		if b.tokens+now.Sub(b.at).Seconds()*l.rate >= l.burst {
			delete(l.buckets, k)
		}
	}
	if len(l.buckets) >= maxBuckets {
		clear(l.buckets)
	}
}
