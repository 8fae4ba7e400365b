package stat

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

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
