package stat

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

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
