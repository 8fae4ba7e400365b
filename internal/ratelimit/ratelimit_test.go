package ratelimit

import (
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	k := New[string](Config{Now: func() time.Time { return now }, Every: time.Second, Burst: 3, Most: 10})
	count := func(key string) (n int) {
		for range 10 {
			if k.Allow(key) {
				n++
			}
		}
		return n
	}
	if a, b := count("a"), count("b"); a != 3 || b != 3 {
		t.Errorf("%d and %d at once", a, b)
	}
	now = now.Add(2 * time.Second)
	if a := count("a"); a != 2 {
		t.Errorf("%d after two seconds", a)
	}
	now = now.Add(-time.Hour)
	if a := count("a"); a != 3 {
		t.Errorf("%d by a clock that was set back", a)
	}
	if a := count("a"); a != 0 {
		t.Errorf("%d more", a)
	}
}

// Strangers cannot make it remember more than its bound, and either the bound or newcomers win.
func TestBound(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	for _, strict := range []bool{false, true} {
		k := New[int](Config{Now: func() time.Time { return now }, Every: time.Second, Burst: 1, Most: 100, Strict: strict})
		let := 0
		for i := range 1000 {
			if k.Allow(i) {
				let++
			}
			if len(k.of) > 100 {
				t.Fatalf("%d keys are remembered", len(k.of))
			}
		}
		if want := map[bool]int{false: 1000, true: 100}[strict]; let != want {
			t.Errorf("strict %v: %d let through, want %d", strict, let, want)
		}
		now = now.Add(time.Minute)
		if !k.Allow(5000) || len(k.of) != 1 && strict {
			t.Errorf("strict %v: %d keys a minute later", strict, len(k.of))
		}
	}
}
