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

// pause is how long to wait after this many failures (from 1): doubled each
// time up to most, with a random half so that agents do not march in step.
func pause(failures int, first, most time.Duration) time.Duration {
	d := most
	if failures < 1 {
		failures = 1
	}
	if shift := failures - 1; shift < 20 && first<<shift < most {
		d = first << shift
	}
	return d/2 + rand.N(d/2+1)
}

// around is d with a random tenth more or less.
func around(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

func randFloat() float64 { return rand.Float64() }
