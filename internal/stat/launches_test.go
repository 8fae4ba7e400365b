package stat

import (
	"errors"
	"math"
	"testing"
)

func TestLaunches(t *testing.T) {
	plan := Launches{6, 10}
	steady := []float64{100, 101, 99, 100.5, 99.5, 100}
	f, err := plan.Judge(steady, 0.95, 0.02)
	if err != nil || f.Steadiness != Stable || f.Median != 100 || f.Lowest != 99 || f.Highest != 101 || f.N != 6 || f.Interval.Low != 99 || f.HalfWidth != 0.01 {
		t.Errorf("%+v %v", f, err)
	}
	if f, err = plan.Judge(steady, 0.95, 0.005); err != nil || f.Steadiness != Unstable || f.Steadiness.String() != "unstable" {
		t.Errorf("%+v %v", f, err)
	}
	if f, err = plan.Judge(steady[:5], 0.95, 0.02); err != nil || f.Steadiness != Unknown || f.Median != 100 || !math.IsNaN(f.HalfWidth) {
		t.Errorf("%+v %v", f, err)
	}
	if f, err = plan.Judge(make([]float64, 6), 0.95, 0.02); err != nil || f.Steadiness != Stable {
		t.Errorf("all zero: %+v %v", f, err)
	}
	for what, c := range map[string]struct {
		plan Launches
		x    []float64
		want error
	}{
		"too many":          {plan, make([]float64, 11), ErrRange},
		"none":              {plan, nil, ErrFew},
		"NaN":               {plan, []float64{math.NaN()}, ErrNotFinite},
		"a minimum below 6": {Launches{5, 10}, steady, ErrFew},
		"no plan":           {Launches{}, steady, ErrFew},
		"backwards":         {Launches{8, 7}, steady, ErrRange},
	} {
		if _, err := c.plan.Judge(c.x, 0.95, 0.02); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	if _, err := plan.Judge(steady, 0.95, math.NaN()); !errors.Is(err, ErrRange) {
		t.Error(err)
	}
	if err := (Launches{6, 6}).Check(0.99); !errors.Is(err, ErrFew) {
		t.Errorf("6 launches at 99 %%: %v", err)
	}
}
