package agent

import (
	"math/rand/v2"
	"time"
)

// Pauses between tries. The first is short because a node that boots may be
// faster than its server; the longest spreads a thousand agents over enough
// time when a server comes back.
const (
	pauseFirst   = 20 * time.Millisecond
	pauseBooting = 5 * time.Second
	pauseReady   = 15 * time.Second
	pauseRefused = time.Minute     // the server answers, and says no
	pauseOver    = 3 * time.Second // of a machine that waits to be told to go off
)

// around is d with a random tenth more or less.
func around(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

func randFloat() float64 { return rand.Float64() }
