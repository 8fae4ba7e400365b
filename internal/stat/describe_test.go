package stat

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDescribeEdges(t *testing.T) {
	nan, inf, most := math.NaN(), math.Inf(1), math.MaxFloat64
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"median of none", Median(nil), nan},
		{"median of one", Median([]float64{3}), 3},
		{"median of two", Median([]float64{4, 3}), 3.5},
		{"median with NaN", Median([]float64{1, nan, 2}), nan},
		{"median with infinity", Median([]float64{1, inf, 2}), 2},
		{"median of the largest", Median([]float64{most, most / 2 * 2}), most},
		{"median without overflow", Median([]float64{most, most * 0.5}), most * 0.75},
		{"median of infinities", Median([]float64{inf, -inf}), nan},
		{"quantile of one", Quantile([]float64{3}, 0.7), 3},
		{"quantile below 0", Quantile([]float64{3}, -0.1), nan},
		{"quantile NaN", Quantile([]float64{3}, nan), nan},
		{"quantile of none", Quantile(nil, 0.5), nan},
		{"quantile beside infinity", Quantile([]float64{1, 2, inf}, 0.5), 2},
		{"MAD of none", MAD(nil), nan},
		{"MAD of equal", MAD([]float64{2, 2, 2}), 0},
		{"MAD around infinity", MAD([]float64{inf, inf, 1}), nan},
		{"MAD with an outlier", MAD([]float64{1, 2, 3, 4, inf}), madFactor},
		{"geometric mean", GeoMean([]float64{1, 100}), 10},
		{"geometric mean of none", GeoMean(nil), nan},
		{"geometric mean with zero", GeoMean([]float64{0, 5}), 0},
		{"geometric mean with a negative", GeoMean([]float64{-1, 5}), nan},
		{"geometric mean of zero and infinity", GeoMean([]float64{0, inf}), nan},
		{"geometric mean of the largest", GeoMean([]float64{most, most}), most},
		{"geometric mean of infinity", GeoMean([]float64{2, inf}), inf},
		{"z", RobustZ(5, 3, 2, 0), 1},
		{"z by the floor", RobustZ(5, 3, 0, 4), 0.5},
		{"z without a scale", RobustZ(1, 3, 0, 0), -inf},
		{"z at the centre", RobustZ(3, 3, 0, 0), 0},
		{"z of NaN", RobustZ(nan, 3, 1, 0), nan},
		{"z with a NaN scale", RobustZ(4, 3, nan, 1), nan},
		{"z with a negative floor", RobustZ(4, 3, 1, -1), nan},
		{"spread of one", Spread([]float64{1}), nan},
		{"spread of equal", Spread([]float64{2, 2, 2, 2, 9}), 0},
		{"spread with infinity", Spread([]float64{1, 2, inf}), nan},
	} {
		if !near(c.got, c.want, 1e-15) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	check(t, GeoMean([]float64{1e-300, 1e-300, 1e300, 1e300}), 1, 1e-12, "geometric mean of extremes")
	x := []float64{3, 1, 2}
	Median(x)
	if !slices.Equal(x, []float64{3, 1, 2}) {
		t.Error("the values that were handed in have moved")
	}
	if z := RobustZs([]float64{1, 1, 1, 1, 2}, 0.1); z[0] != 0 || z[4] != 10 {
		t.Errorf("z of all: %v", z)
	}
}

// What describes a sample knows no order, and has the sample's unit.
func TestDescribeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := sample(t, "x", 2, 40)
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		moved := rapid.Permutation(x).Draw(t, "moved")
		for name, f := range map[string]func([]float64) float64{
			"median": Median, "MAD": MAD, "spread": Spread,
			"quantile": func(x []float64) float64 { return Quantile(x, p) },
		} {
			v := f(x)
			if f(moved) != v {
				t.Errorf("%s depends on the order", name)
			}
			if math.Abs(f(doubled(x, 8))-8*v) > 1e-300 { // next to nothing loses digits
				t.Errorf("%s of 8 times the values is %v, not 8 times %v", name, f(doubled(x, 8)), v)
			}
		}
		s, _ := ordered(x)
		if m := Median(x); m < s[0] || m > s[len(s)-1] || m != Quantile(x, 0.5) {
			t.Errorf("median %v, quantile %v", m, Quantile(x, 0.5))
		}
		if Quantile(x, 0) != s[0] || Quantile(x, 1) != s[len(s)-1] {
			t.Error("the outermost quantiles are not the outermost values")
		}
		if q := rapid.Float64Range(0, 1).Draw(t, "q"); (q < p) != (Quantile(x, q) < Quantile(x, p)) && Quantile(x, q) != Quantile(x, p) {
			t.Error("quantiles are not in order")
		}
		// Half of the values may be anything.
		wild := slices.Clone(x)
		for i := range (len(x) - 1) / 2 {
			wild[i] = 1e300
		}
		for name, v := range map[string]float64{"median": Median(wild), "MAD": MAD(wild), "spread": Spread(wild)} {
			if math.Abs(v) > 1e8 {
				t.Errorf("%s is %v after half of the values went away", name, v)
			}
		}
	})
}

func TestSpreadOfNormalValues(t *testing.T) {
	t.Parallel()
	// The factors for few values make it right on average.
	for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 24} {
		r := seeded(uint64(n))
		sum := 0.0
		const runs = 6_000
		for range runs {
			sum += Spread(normals(r, n, 5, 1))
		}
		if m := sum / runs; math.Abs(m-1) > 0.04 {
			t.Errorf("spread of %d normal values is %v on average", n, m)
		}
	}
}
