package stat

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestRankTestUniform(t *testing.T) {
	t.Parallel()
	r := seeded(1)
	for _, c := range []struct {
		n, m int
		ties bool
	}{{6, 6, false}, {6, 9, true}, {12, 5, true}, {60, 55, false}, {40, 40, true}} {
		const runs = 2_000
		var below [3]int
		limits := []float64{0.5, 0.05, 0.01}
		for range runs {
			a, b := normals(r, c.n, 0, 1), normals(r, c.m, 0, 1)
			if c.ties {
				for i := range a {
					a[i] = math.Round(a[i])
				}
				for i := range b {
					b[i] = math.Round(b[i])
				}
			}
			v, err := MannWhitney(a, b)
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range limits {
				if v.P <= l {
					below[i]++
				}
			}
		}
		for i, l := range limits {
			atMost(t, fmt.Sprintf("%+v: p up to %v", c, l), below[i], runs, l)
			if c.n >= 40 { // many values, small steps: nothing is given away either
				atLeast(t, "the same", below[i], runs, 0.8*l)
			}
		}
	}
}

func TestRankTestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sample(t, "a", 1, 15), sample(t, "b", 1, 15)
		v, err := MannWhitney(a, b)
		if err != nil {
			t.Fatal(err)
		}
		if !(v.P > 0 && v.P <= 1) || v.U < 0 || v.U > float64(len(a)*len(b)) {
			t.Fatalf("%+v", v)
		}
		moved, _ := MannWhitney(rapid.Permutation(a).Draw(t, "moved"), b)
		if moved != v {
			t.Errorf("the order changes %+v to %+v", v, moved)
		}
		other, _ := MannWhitney(b, a)
		if !near(other.P, v.P, 1e-12) || other.U+v.U != float64(len(a)*len(b)) {
			t.Errorf("%+v and the other way round %+v", v, other)
		}
		scaled, _ := MannWhitney(doubled(a, 4), doubled(b, 4))
		if scaled != v {
			t.Errorf("the unit changes %+v to %+v", v, scaled)
		}
	})
	if v, err := MannWhitney([]float64{2, 2, 2, 2, 2}, []float64{2, 2, 2}); err != nil || v.P != 1 {
		t.Errorf("all equal: %+v %v", v, err)
	}
	big := make([]float64, 60)
	if v, err := MannWhitney(big, big); err != nil || v.P != 1 {
		t.Errorf("many equal: %+v %v", v, err)
	}
	for _, c := range [][2][]float64{{nil, {1}}, {{1}, nil}} {
		if _, err := MannWhitney(c[0], c[1]); !errors.Is(err, ErrFew) {
			t.Errorf("an empty sample: %v", err)
		}
		if _, err := HodgesLehmann(c[0], c[1], 0.95); !errors.Is(err, ErrFew) {
			t.Errorf("an empty sample: %v", err)
		}
	}
	if _, err := MannWhitney([]float64{1, math.Inf(1)}, []float64{1}); !errors.Is(err, ErrNotFinite) {
		t.Errorf("infinity: %v", err)
	}
}
