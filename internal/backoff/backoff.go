// Package backoff says how long to wait before something that failed is tried again:
// twice as long each time, and spread, so that those that failed together do not come
// back together.
package backoff

import (
	"math/rand/v2"
	"time"
)

// After is how long to wait after so many failures in a row: [Doubled], [Spread].
func After(failures int, first, most time.Duration) time.Duration {
	return Spread(Doubled(failures, first, most))
}

// Doubled is first after one failure or none, twice that after two, and so on, but at most
// most.
func Doubled(failures int, first, most time.Duration) time.Duration {
	d := first
	for range failures - 1 {
		if d > most-d {
			return most
		}
		d *= 2
	}
	return min(d, most)
}

// Spread is a random time from half of d to d.
func Spread(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
