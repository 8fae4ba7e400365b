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

func TestBinomialEdges(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"none of none", BinomialCDF(0, 0, 0.5), 1},
		{"below", BinomialCDF(-1, 5, 0.5), 0},
		{"all", BinomialCDF(5, 5, 0.5), 1},
		{"never", BinomialCDF(0, 5, 0), 1},
		{"always", BinomialCDF(4, 5, 1), 0},
		{"tail from 0", BinomialTail(0, 5, 0.3), 1},
		{"tail beyond", BinomialTail(6, 5, 0.3), 0},
		{"NaN", BinomialCDF(1, 5, nan), nan},
		{"negative n", BinomialCDF(1, -5, 0.1), nan},
		{"chance above 1", BinomialCDF(1, 5, 1.1), nan},
		{"all of a thousand", BinomialTail(1000, 1000, 0.5), math.Ldexp(1, -1000)},
		{"all of a million underflows to 0", BinomialTail(1_000_000, 1_000_000, 0.5), 0},
		{"beta of NaN", BetaInc(1, 1, nan), nan},
		{"beta of a negative", BetaInc(-1, 1, 0.5), nan},
		{"beta at 0", BetaInc(2, 3, 0), 0},
		{"beta at 1", BetaInc(2, 3, 1), 1},
		{"t of NaN", StudentCDF(nan, 3), nan},
		{"t without freedom", StudentQuantile(0.9, 0), nan},
		{"t at 1", StudentQuantile(1, 3), math.Inf(1)},
		{"t of infinite freedom", StudentQuantile(0.975, math.Inf(1)), NormalQuantile(0.975)},
		{"t of infinity", StudentCDF(math.Inf(-1), 3), 0},
		{"z of 0", NormalQuantile(0), math.Inf(-1)},
		{"z of 1", NormalQuantile(1), math.Inf(1)},
		{"z of 2", NormalQuantile(2), nan},
		{"Cauchy", StudentQuantile(0.75, 1), 1},
	} {
		if !near(c.got, c.want, 1e-12) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if v, err := ClopperPearson(0, 0, 0.95); err != nil || v.Low != 0 || v.High != 1 {
		t.Errorf("no tries: %+v %v", v, err)
	}
	for _, c := range [][2]int{{-1, 5}, {6, 5}, {0, -1}} {
		if _, err := ClopperPearson(c[0], c[1], 0.95); !errors.Is(err, ErrRange) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestBinomialProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 1_000_000_000)).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		p := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(float64(k)/float64(n))).Draw(t, "p")
		at, above := BinomialCDF(k, n, p), BinomialTail(k+1, n, p)
		if !(at >= 0 && at <= 1 && above >= 0 && above <= 1) || math.Abs(at+above-1) > 1e-12 {
			t.Errorf("%v and %v do not add up", at, above)
		}
		// Counting misses instead of hits is the same.
		if other := BinomialTail(n-k, n, 1-p); !near(other, at, 1e-6) && at > 1e-200 && p > 1e-6 && p < 1-1e-6 {
			t.Errorf("%v hits, %v misses", at, other)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 2000).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		v, err := ClopperPearson(k, n, 0.95)
		if err != nil || !v.Holds(float64(k)/float64(n)) || v.Low < 0 || v.High > 1 {
			t.Fatalf("%+v %v", v, err)
		}
		other, _ := ClopperPearson(n-k, n, 0.95)
		if math.Abs(other.Low-(1-v.High)) > 1e-12 {
			t.Errorf("%+v, and the misses %+v", v, other)
		}
	})
}

func TestClopperPearsonHolds(t *testing.T) {
	for _, n := range []int{1, 7, 40} {
		for p := 0.01; p < 1; p += 0.07 {
			missed := 0.0
			for k := range n + 1 {
				v, err := ClopperPearson(k, n, 0.9)
				if err != nil {
					t.Fatal(err)
				}
				if !v.Holds(p) {
					missed += BinomialCDF(k, n, p) - BinomialCDF(k-1, n, p)
				}
			}
			if missed > 0.1+1e-12 {
				t.Errorf("%d tries at %v: missed with chance %v", n, p, missed)
			}
		}
	}
}

func TestErrorRates(t *testing.T) {
	t.Parallel()
	// 80 of 100 nodes are fine; scores share a common part, as against one centre.
	r := seeded(5)
	const runs, nodes, bad = 1_000, 100, 20
	wrong, wrongShare, found := 0, 0.0, 0
	for range runs {
		p := make([]float64, nodes)
		common := 0.5 * r.NormFloat64()
		for i := range p {
			z := common + math.Sqrt(0.75)*r.NormFloat64()
			if i < bad {
				z += 4
			}
			p[i] = NormalCDF(-z)
		}
		holm, err := Holm(p)
		if err != nil {
			t.Fatal(err)
		}
		bh, _ := BenjaminiHochberg(p)
		any, calls, errs := false, 0, 0
		for i := range p {
			any = any || i >= bad && holm[i] <= 0.05
			if bh[i] <= 0.05 {
				calls++
				if i >= bad {
					errs++
				} else {
					found++
				}
			}
		}
		if any {
			wrong++
		}
		if calls > 0 {
			wrongShare += float64(errs) / float64(calls)
		}
	}
	atMost(t, "Holm wrong anywhere", wrong, runs, 0.05)
	if s := wrongShare / runs; s > 0.05 {
		t.Errorf("%v of those called are wrong on average", s)
	}
	atLeast(t, "found", found, runs*bad, 0.7)
}

func TestAdjustProperties(t *testing.T) {
	methods := map[string]func([]float64) ([]float64, error){"Holm": Holm, "BH": BenjaminiHochberg, "BY": BenjaminiYekutieli}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.01, 1, math.NaN()})), 0, 30).Draw(t, "p")
		var there []float64
		for _, v := range p {
			if !math.IsNaN(v) {
				there = append(there, v)
			}
		}
		got := map[string][]float64{}
		for name, f := range methods {
			q, err := f(p)
			if err != nil {
				t.Fatal(err)
			}
			got[name] = q
			short, _ := f(there)
			k := 0
			for i := range p {
				if math.IsNaN(p[i]) {
					if !math.IsNaN(q[i]) {
						t.Errorf("%s: a test that was not made has %v", name, q[i])
					}
					continue
				}
				if q[i] != short[k] {
					t.Errorf("%s: tests that were not made count", name)
				}
				k++
				if q[i] < p[i] || q[i] > 1 {
					t.Errorf("%s: %v became %v", name, p[i], q[i])
				}
				for j := range p {
					if p[j] <= p[i] && q[j] > q[i] {
						t.Errorf("%s: the order changed", name)
					}
				}
			}
		}
		for i := range p {
			if got["BH"][i] > got["Holm"][i] || got["BH"][i] > got["BY"][i] {
				t.Errorf("%v: not the mildest", p[i])
			}
		}
	})
	for name, f := range methods {
		for _, bad := range []float64{-0.1, 1.1, math.Inf(1)} {
			if _, err := f([]float64{0.5, bad}); !errors.Is(err, ErrRange) {
				t.Errorf("%s of %v: %v", name, bad, err)
			}
		}
	}
}
