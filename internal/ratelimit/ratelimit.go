// Package ratelimit bounds how often each of many keys may do something. The buckets are
// those of golang.org/x/time/rate; what is added is that their number has a bound, because
// strangers choose the keys.
package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Keyed gives each key a bucket of its own. For several goroutines.
type Keyed[K comparable] struct {
	c    Config
	mu   sync.Mutex
	of   map[K]*rate.Limiter
	last time.Time // that somebody asked
}

// Config of a Keyed. All but Strict is required.
type Config struct {
	Now func() time.Time
	// Every is the time between two, once Burst were let through at once.
	Every time.Duration
	Burst int
	// Most is how many keys are remembered. Those whose bucket is full are forgotten first.
	Most int
	// Strict refuses new keys when there are more than Most, so that the bound holds for all
	// keys together. Otherwise all are forgotten: nobody is kept out by others.
	Strict bool
}

// New makes buckets.
func New[K comparable](c Config) *Keyed[K] { return &Keyed[K]{c: c, of: map[K]*rate.Limiter{}} }

// Allow reports whether a key may do it once more now, and counts it if so. A clock that
// was set back begins anew: an empty bucket would stay so until it is as late again.
func (k *Keyed[K]) Allow(key K) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.c.Now() // under the lock: those of two callers could come in the wrong order
	if now.Before(k.last) {
		clear(k.of)
	}
	k.last = now
	l := k.of[key]
	if l == nil {
		if !k.room(now) {
			return false
		}
		l = rate.NewLimiter(rate.Every(k.c.Every), k.c.Burst)
		k.of[key] = l
	}
	return l.AllowN(now, 1)
}

// room makes place for one more key.
func (k *Keyed[K]) room(now time.Time) bool {
	if len(k.of) < k.c.Most {
		return true
	}
	for key, l := range k.of {
		if l.TokensAt(now) >= float64(k.c.Burst) {
			delete(k.of, key)
		}
	}
	if len(k.of) >= k.c.Most && !k.c.Strict {
		clear(k.of)
	}
	return len(k.of) < k.c.Most
}
