package stat

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestLeaveOneOutIsSpreadWithoutEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := sample(t, "x", 3, 30)
		s, _ := ordered(x)
		for i, got := range leaveOneOut(s) {
			if want := Spread(slices.Delete(slices.Clone(s), i, i+1)); got != want {
				t.Fatalf("without %d of %v: %v, want %v", i, s, got, want)
			}
		}
	})
}

func TestPooled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ groups, each, wild int }{{1, 20, 0}, {4, 2, 0}, {20, 2, 0}, {10, 3, 0}, {5, 6, 0}, {8, 20, 0}, {20, 6, 4}} {
		r := seeded(uint64(c.groups))
		sum, missed := 0.0, 0
		const runs, level = 1_000, 0.99
		for range runs {
			var groups [][]float64
			for g := range c.groups {
				sd := 1.0
				if g < c.wild {
					sd = 50
				}
				groups = append(groups, normals(r, c.each, 100*r.Float64(), sd))
			}
			s, err := Pooled(groups)
			if err != nil {
				t.Fatal(err)
			}
			sum += s.Value
			if math.Abs(r.NormFloat64()) > StudentQuantile((1+level)/2, s.DF)*s.Value {
				missed++
			}
		}
		atMost(t, fmt.Sprintf("%+v: limits missed", c), missed, runs, 1-level)
		// A few erratic groups of many widen it by a third, not by fifty.
		if m := sum / runs; m < 0.8 || m > 1.1 && (c.wild == 0 || m > 1.4) {
			t.Errorf("%+v: the scale is %v on average", c, m)
		}
	}
	if _, err := Pooled([][]float64{{1}, {}, {2}}); !errors.Is(err, ErrFew) {
		t.Error(err)
	}
	if _, err := Pooled([][]float64{{1, 2}, {math.Inf(1), 3}}); !errors.Is(err, ErrNotFinite) {
		t.Error(err)
	}
	if s, err := Pooled([][]float64{{1, 1, 1}, {7, 7}, {3}}); err != nil || s.Value != 0 || s.N != 5 {
		t.Errorf("%+v %v", s, err)
	}
	if s, err := Pooled([][]float64{{1, 3}}); err != nil || !near(s.Value, 2*pooledFactor, 1e-12) || s.DF != 1 {
		t.Errorf("%+v %v", s, err)
	}
}
