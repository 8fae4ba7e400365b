package stat

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

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

func BenchmarkPeers(b *testing.B) {
	x := normals(seeded(1), 1024, 100, 2)
	for b.Loop() {
		if _, err := Peers(x, Scale{}, 0); err != nil {
			b.Fatal(err)
		}
	}
}
