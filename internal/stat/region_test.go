package stat

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

func TestRegionHoldsTheNext(t *testing.T) {
	t.Parallel()
	levels := []float64{0.95, 0.995}
	for _, n := range []int{3, 4, 7, 12, 40} {
		r := seeded(uint64(n))
		var missed [2]int
		const runs = 2_000
		for range runs {
			x := normals(r, n+1, 10, 0.2)
			for i, l := range levels {
				v, err := PredictionRegion(x[:n], l, 0)
				if err != nil {
					t.Fatal(err)
				}
				if !v.Holds(x[n]) {
					missed[i]++
				}
			}
		}
		for i, l := range levels {
			atMost(t, fmt.Sprintf("next of %d at %v", n, l), missed[i], runs, 1-l)
		}
	}
	if _, err := PredictionRegion([]float64{1, 2}, 0.99, 0); !errors.Is(err, ErrFew) {
		t.Error(err)
	}
	if _, err := PredictionRegion([]float64{1, 2, 3}, 1, 0); !errors.Is(err, ErrRange) {
		t.Error(err)
	}
	if _, err := PredictionRegion([]float64{1, 2, 3}, 0.9, math.NaN()); !errors.Is(err, ErrRange) {
		t.Error(err)
	}
	if v, err := PredictionRegion([]float64{4, 4, 4, 4}, 0.99, 0); err != nil || v.Low != 4 || v.High != 4 {
		t.Errorf("%+v %v", v, err)
	}
	if v, err := PredictionRegion([]float64{4, 4, 4, 4}, 0.99, 0.01); err != nil || !(v.Low < 3.9) || v.Scale.Value != 0.01 {
		t.Errorf("%+v %v", v, err)
	}
}

func TestMedianVariance(t *testing.T) {
	t.Parallel()
	r := seeded(6)
	for _, n := range []int{1, 3, 5, 9, 25} {
		const runs = 20_000
		sum := 0.0
		for range runs {
			m := Median(normals(r, n, 0, 1))
			sum += m * m
		}
		if v := sum / runs; math.Abs(v/medianVariance(n)-1) > 0.06 {
			t.Errorf("the median of %d has variance %v, not %v", n, v, medianVariance(n))
		}
	}
}
