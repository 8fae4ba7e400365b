package stat

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestSmallestShiftIsSeen(t *testing.T) {
	t.Parallel()
	// A node that is slower by just this much is called as often as was said.
	const level, power, n = 0.99, 0.8, 12
	s := Scale{Value: 2, DF: 200}
	d, err := SmallestShift(s, 1, n-1, level, power)
	if err != nil {
		t.Fatal(err)
	}
	r := seeded(4)
	seen := 0
	const runs = 10_000
	for range runs {
		x := normals(r, n, 100, 2)
		x[0] -= d
		p, err := Peers(x, rootMeanSquare(r, 200, 2), 0)
		if err != nil {
			t.Fatal(err)
		}
		if p[0].P <= 1-level {
			seen++
		}
	}
	atMost(t, "seen", seen, runs, power+0.02)
	atLeast(t, "seen", seen, runs, power-0.02)
}

func TestSmallestShiftProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Scale{Value: rapid.Float64Range(0.001, 100).Draw(t, "scale"), DF: float64(rapid.IntRange(1, 300).Draw(t, "df"))}
		n, m := rapid.IntRange(1, 50).Draw(t, "n"), rapid.IntRange(0, 50).Draw(t, "m")
		level, power := rapid.Float64Range(0.7, 0.99999).Draw(t, "level"), rapid.Float64Range(0.51, 0.99).Draw(t, "power")
		get := func(s Scale, n, m int, level, power float64) float64 {
			v, err := SmallestShift(s, n, m, level, power)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		v := get(s, n, m, level, power)
		more := s
		more.DF++
		for what, smaller := range map[string]float64{
			"more values": get(s, n+1, m+1, level, power) * b2f(m > 0), "a lower level": get(s, n, m, level-0.1, power),
			"less power": get(s, n, m, level, power-0.001), "more freedom": get(more, n, m, level, power),
		} {
			if smaller > v*(1+1e-6) {
				t.Errorf("%s: %v became %v", what, v, smaller)
			}
		}
		four := s
		four.Value *= 4
		if !near(get(four, n, m, level, power), 4*v, 1e-12) {
			t.Error("the unit changes what is seen")
		}
	})
	ok := Scale{Value: 1, DF: 5}
	for _, c := range []struct {
		s            Scale
		n, m         int
		level, power float64
	}{{ok, 0, 1, 0.9, 0.8}, {ok, 1, -1, 0.9, 0.8}, {ok, 1, 1, 1, 0.8}, {ok, 1, 1, 0.9, 1}, {ok, 1, 1, 0.9, 0.05}, {Scale{}, 1, 1, 0.9, 0.8}, {Scale{Value: math.NaN(), DF: 3}, 1, 1, 0.9, 0.8}} {
		if _, err := SmallestShift(c.s, c.n, c.m, c.level, c.power); !errors.Is(err, ErrRange) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
