package backoff

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDoubled(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]time.Duration{-1: 1, 0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 10, 6: 10, 1000: 10, math.MaxInt: 10} {
		if got := Doubled(failures, time.Second, 10*time.Second); got != want*time.Second {
			t.Errorf("after %d failures: %v, want %d s", failures, got, want)
		}
	}
}

// Waits are within their bounds, never shrink but by chance, and never overflow.
func TestBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "most"))
		first := time.Duration(rapid.Int64Range(1, int64(most)).Draw(t, "first"))
		n := rapid.IntRange(1, 100).Draw(t, "failures")
		d := Doubled(n, first, most)
		if d < first || d > most || d > Doubled(n+1, first, most) {
			t.Fatalf("%v after %d failures, %v after one more", d, n, Doubled(n+1, first, most))
		}
		if w := After(n, first, most); w < d/2 || w > d {
			t.Fatalf("%v, of %v", w, d)
		}
	})
}
