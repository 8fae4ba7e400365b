package stat

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Values of the textbook formula 1 - 6 sum d^2 / (n (n^2-1)).
func TestSpearman(t *testing.T) {
	t.Parallel()
	x := []float64{1, 2, 3, 4, 5}
	for _, c := range []struct {
		y    []float64
		want float64
	}{
		{[]float64{10, 20, 30, 40, 50}, 1}, {[]float64{5, 4, 3, 2, 1}, -1}, {[]float64{2, 1, 3, 4, 5}, 0.9}, {[]float64{2, 1, 3, 5, 4}, 0.8}, {[]float64{1, 1, 3, 4, 5}, 0.974679},
	} {
		got, err := Spearman(x, c.y, 0.95)
		if err != nil || math.Abs(got.Value-c.want) > 1e-6 || got.Low > got.Value || got.High < got.Value || got.Low < -1 || got.High > 1 || got.N != 5 {
			t.Errorf("%v: %+v, %v", c.y, got, err)
		}
	}
	for _, y := range [][]float64{{1, 2, 3, 4}, {1, 1, 1, 1, 1}, {1, 2, 3, 4, math.NaN()}} {
		if got, err := Spearman(x[:len(y)], y, 0.95); err == nil || len(y) < 5 && !errors.Is(err, ErrFew) {
			t.Errorf("%v: %+v", y, got)
		}
	}
}

// It is of ranks: it does not change with the unit or the order, and turns with the sign.
func TestSpearmanIsOfRanks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(5, 30).Draw(t, "n")
		values := rapid.SliceOfN(rapid.Float64Range(0.1, 50), n, n)
		x, y := values.Draw(t, "x"), values.Draw(t, "y")
		a, err := Spearman(x, y, 0.95)
		if err != nil {
			t.Skip(err)
		}
		exp, minus := slices.Clone(x), slices.Clone(x)
		for i, v := range x {
			exp[i], minus[i] = 1000*v, -v
		}
		b, _ := Spearman(y, exp, 0.95)
		c, _ := Spearman(minus, y, 0.95)
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if !near(a.Value, b.Value) || !near(a.Low, b.Low) || !near(a.Value, -c.Value) || !near(a.Low, -c.High) || a.Low > a.Value || a.High < a.Value {
			t.Errorf("%+v %+v %+v", a, b, c)
		}
	})
}

// The interval holds the true correlation as often as it says, also of few pairs.
func TestSpearmanCovers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{5, 8, 20} {
		for _, rho := range []float64{0, 0.5, 0.9} {
			truth, held := 6/math.Pi*math.Asin(rho/2), 0
			const runs = 2000
			for range runs {
				x, y := make([]float64, n), make([]float64, n)
				for i := range x {
					x[i] = r.NormFloat64()
					y[i] = rho*x[i] + math.Sqrt(1-rho*rho)*r.NormFloat64()
				}
				if c, err := Spearman(x, y, 0.95); err == nil && c.Holds(truth) {
					held++
				}
			}
			t.Logf("%d pairs, correlation %.2f: held in %d of %d", n, truth, held, runs)
			if held < runs*94/100 {
				t.Errorf("%d pairs, correlation %.2f: held in %d of %d", n, truth, held, runs)
			}
		}
	}
}
