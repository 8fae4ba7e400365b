package stat

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestOutliersRarelyFalse(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 4, 6, 9, 16, 20, 30, 64} {
		r := seeded(uint64(n))
		levels := []float64{0.05, 0.005}
		var wrong [2]int
		const runs = 3_000
		for range runs {
			p, err := Outliers(normals(r, n, 100, 2), max(1, n/10), 0)
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range levels {
				for _, v := range p {
					if v <= l {
						wrong[i]++
						break
					}
				}
			}
		}
		for i, l := range levels {
			atMost(t, fmt.Sprintf("%d values at %v", n, l), wrong[i], runs, 1.25*l)
		}
	}
}

func TestOutliersFound(t *testing.T) {
	for _, c := range []struct {
		n, bad int
		power  float64
	}{{8, 1, 0.8}, {10, 2, 0.7}, {16, 2, 0.85}, {64, 6, 0.9}} {
		r := seeded(uint64(c.n))
		found := 0
		const runs = 500
		for range runs {
			x := normals(r, c.n, 100, 1)
			for i := range c.bad {
				x[i] -= 6
			}
			p, err := Outliers(x, max(1, c.n/5), 0)
			if err != nil {
				t.Fatal(err)
			}
			all := true
			for i, v := range p {
				all = all && (v <= 0.05) == (i < c.bad)
			}
			if all {
				found++
			}
		}
		atLeast(t, fmt.Sprintf("%+v found and no other", c), found, runs, 0.9*c.power)
	}
}

func TestOutliersEdges(t *testing.T) {
	p, err := Outliers([]float64{5, 5, 5, 5, 9}, 1, 0)
	if err != nil || p[4] != 0 || p[0] != 1 {
		t.Errorf("%v %v", p, err)
	}
	if p, _ = Outliers([]float64{5, 5, 5, 5, 5.01}, 1, 0.1); p[4] < 0.5 {
		t.Errorf("with a floor: %v", p)
	}
	if p, _ = Outliers(make([]float64, 10), 3, 0); Median(p) != 1 || p[0] != 1 {
		t.Errorf("all equal: %v", p)
	}
	// The deleted residual of one value among three, by hand: (9-2)/sqrt(2*(1+1/2)).
	p, err = Outliers([]float64{1, 3, 9}, 1, 0)
	if want := 3 * 2 * studentTail(7/math.Sqrt(3), 1); err != nil || !near(p[2], want, 1e-12) {
		t.Errorf("%v %v, want %v", p, err, want)
	}
	for _, c := range []struct {
		x     []float64
		most  int
		floor float64
		want  error
	}{{[]float64{1, 2}, 1, 0, ErrFew}, {[]float64{1, 2, 3}, 0, 0, ErrRange}, {[]float64{1, 2, 3, 4}, 2, 0, ErrRange}, {[]float64{1, 2, 3}, 1, -1, ErrRange}, {[]float64{1, 2, math.Inf(1)}, 1, 0, ErrNotFinite}} {
		if _, err := Outliers(c.x, c.most, c.floor); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestOutliersProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := normals(seeded(rapid.Uint64().Draw(t, "seed")), rapid.IntRange(3, 40).Draw(t, "n"), 3, 1)
		most := rapid.IntRange(1, (len(x)-1)/2).Draw(t, "most")
		p, err := Outliers(x, most, 0)
		if err != nil {
			t.Fatal(err)
		}
		order := rapid.Permutation(seq(len(x))).Draw(t, "order")
		y := make([]float64, len(x))
		for i, k := range order {
			y[i] = 4 * x[k]
		}
		q, _ := Outliers(y, most, 0)
		below := 0
		for i, k := range order {
			if q[i] != p[k] {
				t.Errorf("order or unit change %v to %v", p[k], q[i])
			}
			if q[i] < 1 {
				below++
			}
		}
		if below > most {
			t.Errorf("%d of at most %d", below, most)
		}
	})
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
