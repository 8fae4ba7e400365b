package stat

import (
	"errors"
	"math"
	"testing"
)

func TestOrderRanksKnown(t *testing.T) {
	for n, want := range map[int][2]int{6: {1, 6}, 7: {1, 7}, 9: {2, 8}, 10: {2, 9}, 15: {4, 12}, 20: {6, 15}, 25: {8, 18}, 30: {10, 21}, 50: {18, 33}} {
		low, high, coverage, err := OrderRanks(n, 0.5, 0.95)
		if low != want[0] || high != want[1] || err != nil || coverage < 0.95 {
			t.Errorf("%d values: %d %d %v %v, want %v", n, low, high, coverage, err, want)
		}
	}
	for n := range 6 {
		if _, _, _, err := OrderRanks(n, 0.5, 0.95); !errors.Is(err, ErrFew) {
			t.Errorf("%d values: %v, want ErrFew", n, err)
		}
	}
	// Somebody who asks for exactly what 6 values reach gets it.
	if low, high, c, err := OrderRanks(6, 0.5, 0.96875); low != 1 || high != 6 || err != nil || !near(c, 0.96875, 1e-12) {
		t.Errorf("exact level: %d %d %v %v", low, high, c, err)
	}
	// A billion values must not underflow or take long.
	low, high, c, err := OrderRanks(1_000_000_000, 0.5, 0.95)
	if err != nil || low+high != 1_000_000_001 || math.Abs(float64(high-low)-2*0.97998*math.Sqrt(1e9)) > 10 || c < 0.95 || c > 0.9501 {
		t.Errorf("a billion: %d %d %v %v", low, high, c, err)
	}
	for _, bad := range []float64{0, 1, -1, 2, math.NaN()} {
		if _, _, _, err := OrderRanks(10, 0.5, bad); !errors.Is(err, ErrRange) {
			t.Errorf("level %v: %v", bad, err)
		}
		if _, _, _, err := OrderRanks(10, bad, 0.95); !errors.Is(err, ErrRange) {
			t.Errorf("quantile %v: %v", bad, err)
		}
	}
	if _, err := MedianInterval([]float64{1, 2, 3, 4, 5, math.NaN()}, 0.95); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN: %v", err)
	}
}

func TestIntervalsHold(t *testing.T) {
	t.Parallel()
	// Skewed values, so that nothing but ranks can be right.
	r := seeded(7)
	for _, c := range []struct {
		n        int
		p, level float64
	}{{6, 0.5, 0.95}, {10, 0.5, 0.95}, {25, 0.5, 0.99}, {40, 0.2, 0.9}} {
		missed := 0
		const runs = 5_000
		var v Interval
		for range runs {
			x := normals(r, c.n, 0, 1)
			for i := range x {
				x[i] = math.Exp(2 * x[i])
			}
			var err error
			if v, err = QuantileInterval(x, c.p, c.level); err != nil {
				t.Fatal(err)
			}
			if !v.Holds(math.Exp(2 * NormalQuantile(c.p))) {
				missed++
			}
		}
		// What is reached is what is told, from both sides.
		atMost(t, "missed", missed, runs, 1-v.Level)
		atLeast(t, "missed", missed, runs, 1-v.Level)
	}
}

func TestIntervalHalfWidth(t *testing.T) {
	if w := (Interval{98, 102, 0.95}).HalfWidth(100); w != 0.02 {
		t.Error(w)
	}
	if w := (Interval{-1, 1, 0.95}).HalfWidth(0); !math.IsInf(w, 1) {
		t.Error(w)
	}
	if w := (Interval{0, 0, 0.95}).HalfWidth(0); w != 0 {
		t.Error(w)
	}
	if w := (Interval{-math.MaxFloat64, math.MaxFloat64, 0.95}).HalfWidth(1); w != math.MaxFloat64 {
		t.Error(w)
	}
}
