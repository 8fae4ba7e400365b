package stat

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestShiftProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sample(t, "a", 4, 15), sample(t, "b", 4, 15)
		s, err := HodgesLehmann(a, b, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Holds(s.Value) || s.Level < 0.95 {
			t.Errorf("%+v", s)
		}
		other, _ := HodgesLehmann(b, a, 0.95)
		if other.Value != -s.Value || other.Low != -s.High || other.High != -s.Low {
			t.Errorf("%+v and the other way round %+v", s, other)
		}
		four, _ := HodgesLehmann(doubled(a, 4), doubled(b, 4), 0.95)
		if four.Value != 4*s.Value || four.Low != 4*s.Low || four.High != 4*s.High {
			t.Errorf("%+v, and in another unit %+v", s, four)
		}
	})
	if _, err := HodgesLehmannRatio([]float64{1, 2, 3, 0}, []float64{1, 2, 3, 4}, 0.95); !errors.Is(err, ErrNotPositive) {
		t.Errorf("zero: %v", err)
	}
	if s, err := HodgesLehmannRatio([]float64{1, 2}, []float64{2, 4}, 0.95); !errors.Is(err, ErrFew) || !near(s.Value, 2, 1e-12) || s.Low != 0 || !math.IsInf(s.High, 1) {
		t.Errorf("two against two: %+v %v", s, err)
	}
	if s, err := HodgesLehmann([]float64{5, 5, 5, 5}, []float64{5, 5, 5, 5}, 0.95); err != nil || s.Value != 0 || s.Low != 0 || s.High != 0 {
		t.Errorf("all equal: %+v %v", s, err)
	}
}

func TestShiftIntervalHolds(t *testing.T) {
	t.Parallel()
	r := seeded(3)
	for _, n := range []int{6, 10, 60} {
		missed := 0
		runs := 3_000
		if n > 50 {
			runs = 400
		}
		var s Shift
		for range runs {
			a, b := normals(r, n, 0, 0.1), normals(r, n, math.Log(1.1), 0.1)
			for i := range a {
				a[i], b[i] = math.Exp(a[i]), math.Exp(b[i])
			}
			var err error
			if s, err = HodgesLehmannRatio(a, b, 0.95); err != nil {
				t.Fatal(err)
			}
			if !s.Holds(1.1) {
				missed++
			}
		}
		atMost(t, fmt.Sprintf("ratio of %d missed", n), missed, runs, 1-s.Level)
		atLeast(t, fmt.Sprintf("ratio of %d missed", n), missed, runs, 1-s.Level)
	}
}
