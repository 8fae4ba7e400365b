package stat_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/muster-hpc/muster/internal/stat"
)

// A value like those of the history is called odd as often as the level says.
func TestAgainstHistory(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 11))
	const runs, n = 20000, 40
	odd := 0
	history := make([]float64, n)
	for range runs {
		for i := range history {
			history[i] = 3 + 0.02*r.NormFloat64()
		}
		s, err := stat.ScaleOf(history)
		if err != nil {
			t.Fatal(err)
		}
		p, err := stat.Against(3+0.02*r.NormFloat64(), stat.Median(history), s, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.P <= 0.01 {
			odd++
		}
	}
	if share := float64(odd) / runs; share > 0.012 {
		t.Errorf("%.4f of honest values have p <= 0.01", share)
	}
	p, err := stat.Against(2.8, 3, stat.Scale{Value: 0.02, DF: 20, N: 40}, 0)
	if err != nil || p.Z > -9 || p.P > 1e-6 {
		t.Errorf("10 scales below: %+v, %v", p, err)
	}
	for _, bad := range []stat.Scale{{Value: 1}, {Value: -1, DF: 1}, {Value: 1, DF: 1, N: -1}} {
		if _, err := stat.Against(1, 1, bad, 0); !errors.Is(err, stat.ErrRange) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := stat.Against(math.NaN(), 1, stat.Scale{Value: 1, DF: 1}, 0); !errors.Is(err, stat.ErrNotFinite) {
		t.Error(err)
	}
}
