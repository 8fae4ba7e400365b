package boot

import (
	"crypto/sha256"
	"time"
)

// slowBelow is a rate of SHA-256, in bytes/s, that only processors without any instruction
// for it fall below, those that are translated above all.
const slowBelow = 100 << 20

// slowDigest tells whether this processor makes SHA-256 slowly. It takes some milliseconds
// there, and a tenth of one elsewhere.
func slowDigest() bool {
	b := make([]byte, 16<<10)
	best := time.Hour
	for range 3 { // the first time, code is brought in; others may have the core for a while
		t := time.Now()
		sha256.Sum256(b)
		best = min(best, time.Since(t))
	}
	return float64(len(b)) < slowBelow*best.Seconds()
}
