package stat

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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

func TestPeersAreFair(t *testing.T) {
	t.Parallel()
	// Each honest node has its chance, and no more.
	levels := []float64{0.05, 0.005}
	for _, n := range []int{3, 4, 5, 8, 25} {
		r := seeded(uint64(n))
		var low, known [2]int
		const runs = 3_000
		for range runs {
			x := normals(r, n, 100, 2)
			p, err := Peers(x, Scale{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			k, err := Peers(x, rootMeanSquare(r, 40, 2), 0)
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range levels {
				if p[0].P <= l {
					low[i]++
				}
				if k[0].P <= l {
					known[i]++
				}
			}
		}
		for i, l := range levels {
			atMost(t, fmt.Sprintf("%d peers at %v", n, l), low[i], runs, l)
			atMost(t, fmt.Sprintf("%d peers at %v with history", n, l), known[i], runs, l)
		}
	}
}

// rootMeanSquare is a scale that has exactly the degrees of freedom that it says.
func rootMeanSquare(r *rand.Rand, df int, sd float64) Scale {
	sum := 0.0
	for _, v := range normals(r, df, 0, sd) {
		sum += v * v
	}
	return Scale{Value: math.Sqrt(sum / float64(df)), DF: float64(df), N: df}
}

func TestPeersFindCulprits(t *testing.T) {
	// Two slow nodes of 16 hide neither themselves nor each other.
	r := seeded(2)
	x := normals(r, 16, 100, 1)
	x[3], x[9] = 80, 79
	p, err := Peers(x, Scale{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]float64, len(p))
	for i := range p {
		all[i] = p[i].P
	}
	all, _ = Holm(all)
	for i, v := range all {
		if (v < 0.01) != (i == 3 || i == 9) {
			t.Errorf("node %d: %v of %+v", i, v, p[i])
		}
	}
	if p[3].Z > -5 || p[3].Scale.N != 15 || p[3].Scale.DF != 7 {
		t.Errorf("%+v", p[3])
	}
	// Among four the same deficit is not enough, unless history knows the spread.
	four := []float64{100, 101, 99.5, 80}
	if p, _ = Peers(four, Scale{}, 0); p[3].P < 0.01 {
		t.Errorf("four convict: %+v", p[3])
	}
	if p, _ = Peers(four, Scale{Value: 1, DF: 60}, 0); p[3].P > 1e-6 {
		t.Errorf("four with history acquit: %+v", p[3])
	}
	// Two are equally far from each other.
	if p, err = Peers([]float64{100, 80}, Scale{Value: 1, DF: 60}, 0); err != nil || p[0].P != p[1].P || p[0].Z != -p[1].Z {
		t.Errorf("two: %+v %v", p, err)
	}
}

func TestPeersEdges(t *testing.T) {
	for _, x := range [][]float64{nil, {1}, {1, 2}} {
		if _, err := Peers(x, Scale{}, 0); !errors.Is(err, ErrFew) {
			t.Errorf("%v: %v", x, err)
		}
	}
	if _, err := Peers([]float64{1}, Scale{Value: 1, DF: 3}, 0); !errors.Is(err, ErrFew) {
		t.Error(err)
	}
	if _, err := Peers([]float64{1, 2, math.NaN()}, Scale{}, 0); !errors.Is(err, ErrNotFinite) {
		t.Error(err)
	}
	for _, s := range []Scale{{Value: -1, DF: 1}, {Value: math.NaN(), DF: 1}, {Value: 1, DF: -1}} {
		if _, err := Peers([]float64{1, 2, 3}, s, 0); !errors.Is(err, ErrRange) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, err := Peers([]float64{1, 2, 3}, Scale{}, -1); !errors.Is(err, ErrRange) {
		t.Error(err)
	}
	// All equal: nobody differs. One differs from equal ones: infinitely, or by the
	// floor.
	equal := []float64{5, 5, 5, 5, 5}
	p, err := Peers(equal, Scale{}, 0)
	if err != nil || p[0].Z != 0 || p[0].P != 1 {
		t.Errorf("%+v %v", p, err)
	}
	equal[2] = 5.01
	if p, _ = Peers(equal, Scale{}, 0); p[2].P != 0 || p[1].P != 1 {
		t.Errorf("%+v", p)
	}
	if p, _ = Peers(equal, Scale{}, 0.05); p[2].P < 0.5 {
		t.Errorf("%+v", p)
	}
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

func BenchmarkPeers(b *testing.B) {
	x := normals(seeded(1), 1024, 100, 2)
	for b.Loop() {
		if _, err := Peers(x, Scale{}, 0); err != nil {
			b.Fatal(err)
		}
	}
}
