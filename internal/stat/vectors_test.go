package stat

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"
)

// vectors is what testdata/vectors.py wrote: SciPy's answers.
type vectors struct {
	Made     string
	Describe []struct {
		X, P, Quantiles            []float64
		Median, Mad, Gmean, Spread float64
	}
	Normal  struct{ Z, CDF, P, Quantile []float64 }
	Student []struct {
		DF                  float64
		T, CDF, P, Quantile []float64
	}
	Beta     []struct{ A, B, X, Value float64 }
	Binomial []struct {
		N, K         int
		P, CDF, Tail float64
	}
	Clopper []struct {
		K, N             int
		Level, Low, High float64
	}
	Order []struct {
		N, Low, High       int
		P, Level, Coverage float64
	}
	Ranks []struct {
		A, B                          []float64
		U, P, Shift, Low, High, Level float64
		K                             int
		Exact                         bool
	}
	Multiple []struct{ P, Holm, BH, BY []float64 }
	Power    []struct{ DF, Level, Power, Shift float64 }
	Pairs    []struct {
		Nodes                  int
		A, B, Distance         []int
		Value, Effects, Levels []float64
		Scale                  float64
	}
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// near says whether two numbers agree to a relative error.
func near(a, b, relative float64) bool {
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return true
	}
	return math.Abs(a-b) <= relative*math.Max(math.Abs(a), math.Abs(b))
}

func check(t *testing.T, got, want, relative float64, format string, args ...any) {
	t.Helper()
	if !near(got, want, relative) {
		t.Errorf(format+": %.17g, want %.17g (off by %.1e)", append(args, got, want, math.Abs(got-want)/math.Abs(want))...)
	}
}

func TestAgainstSciPy(t *testing.T) {
	v := readVectors(t)
	t.Log(v.Made)
	for i, c := range v.Describe {
		check(t, Median(c.X), c.Median, 1e-15, "median %d", i)
		check(t, MAD(c.X), c.Mad, 1e-13, "MAD %d", i)
		check(t, GeoMean(c.X), c.Gmean, 1e-13, "geometric mean %d", i)
		for j, p := range c.P {
			check(t, Quantile(c.X, p), c.Quantiles[j], 1e-14, "quantile %v of %d", p, i)
		}
		if len(c.X) > 1 {
			check(t, Spread(c.X), c.Spread, 1e-12, "spread %d", i)
		}
	}
	for i, z := range v.Normal.Z {
		check(t, NormalCDF(z), v.Normal.CDF[i], 1e-12, "normal cdf of %v", z)
	}
	for i, p := range v.Normal.P {
		check(t, NormalQuantile(p), v.Normal.Quantile[i], 1e-12, "normal quantile of %v", p)
	}
	for _, c := range v.Student {
		for i, x := range c.T {
			check(t, StudentCDF(x, c.DF), c.CDF[i], 1e-11, "t cdf of %v, %v df", x, c.DF)
		}
		for i, p := range c.P {
			check(t, StudentQuantile(p, c.DF), c.Quantile[i], 1e-10, "t quantile of %v, %v df", p, c.DF)
		}
	}
	for _, c := range v.Beta {
		check(t, BetaInc(c.A, c.B, c.X), c.Value, 1e-10, "beta %v %v at %v", c.A, c.B, c.X)
	}
	for _, c := range v.Binomial {
		check(t, BinomialCDF(c.K, c.N, c.P), c.CDF, 1e-9, "binomial %d of %d at %v", c.K, c.N, c.P)
		check(t, BinomialTail(c.K, c.N, c.P), c.Tail, 1e-9, "binomial tail %d of %d at %v", c.K, c.N, c.P)
	}
	for _, c := range v.Clopper {
		got, err := ClopperPearson(c.K, c.N, c.Level)
		if err != nil {
			t.Fatal(err)
		}
		check(t, got.Low, c.Low, 1e-9, "Clopper-Pearson low of %d of %d", c.K, c.N)
		check(t, got.High, c.High, 1e-9, "Clopper-Pearson high of %d of %d", c.K, c.N)
	}
	for _, c := range v.Order {
		low, high, coverage, err := OrderRanks(c.N, c.P, c.Level)
		if c.Low == 0 {
			if !errors.Is(err, ErrFew) {
				t.Errorf("ranks of %d at %v, level %v: %d %d %v, want none", c.N, c.P, c.Level, low, high, err)
			}
			continue
		}
		if low != c.Low || high != c.High || err != nil {
			t.Errorf("ranks of %d at %v, level %v: %d %d %v, want %d %d", c.N, c.P, c.Level, low, high, err, c.Low, c.High)
		}
		check(t, coverage, c.Coverage, 1e-11, "coverage of %d at %v, level %v", c.N, c.P, c.Level)
	}
	for _, c := range v.Multiple {
		holm, err1 := Holm(c.P)
		bh, err2 := BenjaminiHochberg(c.P)
		by, err3 := BenjaminiYekutieli(c.P)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		for i := range c.P {
			check(t, holm[i], c.Holm[i], 1e-13, "Holm")
			check(t, bh[i], c.BH[i], 1e-13, "Benjamini-Hochberg")
			check(t, by[i], c.BY[i], 1e-13, "Benjamini-Yekutieli")
		}
	}
	for _, c := range v.Power {
		got, err := SmallestShift(Scale{Value: 1, DF: c.DF}, 1, 0, c.Level, c.Power)
		if err != nil {
			t.Fatal(err)
		}
		check(t, got, c.Shift, 1e-6, "smallest shift at %v df, level %v, power %v", c.DF, c.Level, c.Power)
	}
}

func TestRanksAgainstSciPy(t *testing.T) {
	for i, c := range readVectors(t).Ranks {
		got, err := MannWhitney(c.A, c.B)
		if err != nil {
			t.Fatal(err)
		}
		if got.Exact != c.Exact || got.U != c.U {
			t.Errorf("case %d: %+v, want U %v, exact %v", i, got, c.U, c.Exact)
		}
		check(t, got.P, c.P, 1e-10, "case %d: p", i)
		s, err := HodgesLehmann(c.A, c.B, 0.95)
		check(t, s.Value, c.Shift, 1e-14, "case %d: shift", i)
		switch {
		case len(c.A)*len(c.B) > exactProduct:
			if s.Exact || err != nil {
				t.Errorf("case %d: %+v, %v", i, s, err)
			}
		case c.K == 0:
			if !errors.Is(err, ErrFew) || !math.IsInf(s.Low, -1) || !math.IsInf(s.High, 1) {
				t.Errorf("case %d: %+v, %v: want no interval", i, s, err)
			}
		default:
			if err != nil || !s.Exact {
				t.Errorf("case %d: %+v, %v", i, s, err)
			}
			check(t, s.Low, c.Low, 1e-14, "case %d: low", i)
			check(t, s.High, c.High, 1e-14, "case %d: high", i)
			check(t, s.Level, c.Level, 1e-12, "case %d: level", i)
		}
	}
}

func TestPairsAgainstDense(t *testing.T) {
	for i, c := range readVectors(t).Pairs {
		var list []Pair
		for e := range c.A {
			list = append(list, Pair{c.A[e], c.B[e], c.Distance[e], c.Value[e]})
		}
		f, err := FitPairs(c.Nodes, 2, list)
		if err != nil {
			t.Fatal(err)
		}
		// Both stop at a scale that changes no more; the sparse fit sooner.
		for k, v := range c.Effects {
			if math.Abs(f.Nodes[k]-v) > 0.02*c.Scale {
				t.Errorf("case %d: node %d: %v, want %v (scale %v)", i, k, f.Nodes[k], v, c.Scale)
			}
		}
		for k, v := range c.Levels {
			if math.Abs(f.Distances[k]-v) > 0.02*c.Scale {
				t.Errorf("case %d: distance %d: %v, want %v", i, k, f.Distances[k], v)
			}
		}
		check(t, f.Scale, c.Scale, 0.02, "case %d: scale", i)
	}
}
