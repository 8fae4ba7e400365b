package stat

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// site is a pretended set of nodes in racks.
type site struct {
	nodes, rack int       // nodes in all and in each rack
	effect      []float64 // by node
	level       []float64 // inside of a rack, between racks
	noise       float64
	links       map[[2]int]float64
}

func newSite(r *rand.Rand, nodes, rack int, spread, noise float64) *site {
	return &site{nodes, rack, normals(r, nodes, 0, spread), []float64{math.Log(1e10), math.Log(4e9)}, noise, map[[2]int]float64{}}
}

func (s *site) measure(r *rand.Rand, a, b int) Pair {
	a, b = min(a, b), max(a, b)
	d := 0
	if a/s.rack != b/s.rack {
		d = 1
	}
	v := s.effect[a] + s.effect[b] + s.level[d] + s.links[[2]int{a, b}] + s.noise*r.NormFloat64()
	return Pair{a, b, d, math.Exp(v)}
}

// rounds measures random matchings.
func (s *site) rounds(r *rand.Rand, count int) []Pair {
	var out []Pair
	for range count {
		p := r.Perm(s.nodes)
		for i := 0; i+1 < len(p); i += 2 {
			out = append(out, s.measure(r, p[i], p[i+1]))
		}
	}
	return out
}

// all measures every pair.
func (s *site) all(r *rand.Rand) []Pair {
	var out []Pair
	for a := range s.nodes {
		for b := range a {
			out = append(out, s.measure(r, a, b))
		}
	}
	return out
}

func mustFit(t interface{ Fatal(...any) }, nodes, distances int, list []Pair) *PairFit {
	f, err := FitPairs(nodes, distances, list)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPairsTellNodeTierAndLink(t *testing.T) {
	for _, nodes := range []int{8, 16, 64} {
		r := seeded(uint64(nodes))
		s := newSite(r, nodes, nodes/2, 0.005, 0.01)
		healthy := mustFit(t, nodes, 2, s.rounds(r, 7))
		s.effect[3] = -0.2                                 // a slow node
		s.level[1] -= 0.5                                  // a slow tier
		s.links[[2]int{1, 6}] = -1.5                       // a slow link
		list := append(s.rounds(r, 7), s.measure(r, 1, 6)) // surely seen
		if nodes == 8 {
			list = s.all(r)
		}
		f := mustFit(t, nodes, 2, list)
		for i, v := range f.Nodes {
			if slow := v < -0.1; slow != (i == 3) {
				t.Errorf("%d nodes: node %d has %v", nodes, i, v)
			}
		}
		if d := f.Distances[1] - healthy.Distances[1]; math.Abs(d+0.5) > 0.05 {
			t.Errorf("%d nodes: the slow tier is told as %v", nodes, d)
		}
		if d := f.Distances[0] - healthy.Distances[0]; math.Abs(d) > 0.05 {
			t.Errorf("%d nodes: the good tier is told as %v", nodes, d)
		}
		for e, v := range f.Residuals {
			if slow := v < -0.5; slow != (list[e].A == 1 && list[e].B == 6) {
				t.Errorf("%d nodes: link %v has %v", nodes, list[e], v)
			}
			if v < -0.5 && f.Weights[e] > 0.01 {
				t.Errorf("%d nodes: the slow link weighs %v", nodes, f.Weights[e])
			}
		}
	}
}

func TestPairsWithoutNoise(t *testing.T) {
	r := seeded(1)
	s := newSite(r, 12, 4, 0.05, 0)
	list := s.rounds(r, 8)
	list[5].Value /= 3
	f := mustFit(t, 12, 2, list)
	m := Median(s.effect)
	for i, v := range f.Nodes {
		if math.Abs(v-(s.effect[i]-m)) > 1e-6 {
			t.Errorf("node %d: %v, want %v", i, v, s.effect[i]-m)
		}
	}
	for d, v := range f.Distances {
		if math.Abs(v-(s.level[d]+2*m)) > 1e-6 {
			t.Errorf("distance %d: %v, want %v", d, v, s.level[d]+2*m)
		}
	}
	if math.Abs(f.Residuals[5]+math.Log(3)) > 1e-5 || f.Scale > 1e-5 {
		t.Errorf("the link: %v, scale %v", f.Residuals[5], f.Scale)
	}
}

func TestPairsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(5, 20).Draw(t, "nodes")
		r := seeded(rapid.Uint64().Draw(t, "seed"))
		s := newSite(r, nodes, 1+nodes/2, 0.02, 0.03)
		list := s.all(r)
		f := mustFit(t, nodes, 2, list)

		// In another unit, in another order, and with the nodes' numbers changed, the
		// same is told.
		rename, order := r.Perm(nodes), r.Perm(len(list))
		var other []Pair
		for _, e := range order {
			p := list[e]
			other = append(other, Pair{rename[p.B], rename[p.A], p.Distance, 1e-6 * p.Value})
		}
		g := mustFit(t, nodes, 2, other)
		close := func(a, b float64) bool { return math.Abs(a-b) < 1e-4*f.Scale }
		for i, v := range f.Nodes {
			if !close(v, g.Nodes[rename[i]]) {
				t.Errorf("node %d: %v and %v", i, v, g.Nodes[rename[i]])
			}
		}
		for d, v := range f.Distances {
			if !close(v+math.Log(1e-6), g.Distances[d]) {
				t.Errorf("distance %d: %v and %v", d, v, g.Distances[d])
			}
		}
		if !close(f.Scale, g.Scale) || f.DF != g.DF {
			t.Errorf("scale %v and %v, df %v and %v", f.Scale, g.Scale, f.DF, g.DF)
		}
		if m := Median(f.Nodes); m != 0 && math.Abs(m) > 1e-15 {
			t.Errorf("the median of nodes is %v", m)
		}
		// Effects and rest add up to what was measured.
		for e, p := range list {
			if v := f.Nodes[p.A] + f.Nodes[p.B] + f.Distances[p.Distance] + f.Residuals[e]; math.Abs(v-math.Log(p.Value)) > 1e-9 {
				t.Errorf("pair %v adds up to %v", p, v)
			}
		}
	})
}

func TestPairsThatCannotTell(t *testing.T) {
	pair := func(a, b, d int) Pair { return Pair{a, b, d, 1 + float64(a+3*b)} }
	full := func(from, to, d int) (out []Pair) {
		for a := from; a < to; a++ {
			for b := from; b < a; b++ {
				out = append(out, pair(a, b, d))
			}
		}
		return out
	}
	join := slices.Concat[[]Pair]
	all := func(n int) (out []int) {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	for _, c := range []struct {
		what             string
		nodes, distances int
		pairs            []Pair
		untold           *Untold // nil: ErrFew
	}{
		{"none", 4, 1, nil, nil},
		{"two nodes", 2, 1, full(0, 2, 0), &Untold{Nodes: all(2)}},
		{"a triangle", 3, 1, full(0, 3, 0), nil},
		{"a triangle, twice", 3, 1, join(full(0, 3, 0), full(0, 3, 0)), nil},
		{"one round", 8, 1, []Pair{pair(0, 1, 0), pair(2, 3, 0), pair(4, 5, 0), pair(6, 7, 0)}, &Untold{Nodes: all(8)}},
		{"a chain", 5, 1, []Pair{pair(0, 1, 0), pair(1, 2, 0), pair(2, 3, 0), pair(3, 4, 0)}, &Untold{Nodes: []int{1, 3}, Distances: []int{0}}},
		{"an even ring", 4, 1, []Pair{pair(0, 1, 0), pair(1, 2, 0), pair(2, 3, 0), pair(3, 0, 0)}, &Untold{Nodes: all(4)}},
		{"two apart from the rest", 8, 1, join(full(0, 6, 0), []Pair{pair(6, 7, 0)}), &Untold{Nodes: []int{6, 7}}},
		{"a distance of one node", 7, 2, join(full(0, 6, 0), []Pair{pair(6, 0, 1), pair(6, 1, 1), pair(6, 2, 1)}), &Untold{Nodes: []int{6}, Distances: []int{1}}},
		{"a distance for a rack", 9, 3, join(full(0, 6, 0), full(6, 9, 1), []Pair{pair(0, 6, 2), pair(1, 7, 2), pair(2, 8, 2)}),
			&Untold{Nodes: []int{6, 7, 8}, Distances: []int{1, 2}}},
	} {
		_, err := FitPairs(c.nodes, c.distances, c.pairs)
		var u *Untold
		switch {
		case c.untold == nil:
			if !errors.Is(err, ErrFew) {
				t.Errorf("%s: %v, want ErrFew", c.what, err)
			}
		case !errors.As(err, &u) || !slices.Equal(u.Nodes, c.untold.Nodes) || !slices.Equal(u.Distances, c.untold.Distances):
			t.Errorf("%s: %v, want %v", c.what, err, c.untold)
		}
	}
	if s := (&Untold{Nodes: all(20)}).Error(); !strings.Contains(s, "and 12 more") {
		t.Error(s)
	}
	// Four nodes in all pairs, and two groups of one distance, can be told.
	mustFit(t, 4, 1, full(0, 4, 0))
	f := mustFit(t, 10, 3, join(full(0, 4, 1), full(5, 9, 1)))
	if !math.IsNaN(f.Nodes[4]) || !math.IsNaN(f.Nodes[9]) || !math.IsNaN(f.Distances[0]) || !math.IsNaN(f.Distances[2]) || math.IsNaN(f.Distances[1]) {
		t.Errorf("what was not measured: %v %v", f.Nodes, f.Distances)
	}
	if !math.IsNaN(f.NodeError(4)) || !math.IsNaN(f.NodeError(-1)) || !math.IsNaN(f.NodeError(10)) {
		t.Error("there is an error of what was not measured")
	}
	for _, p := range []Pair{{0, 0, 0, 1}, {0, 9, 0, 1}, {-1, 1, 0, 1}, {0, 1, 1, 1}, {0, 1, -1, 1}} {
		if _, err := FitPairs(4, 1, []Pair{p}); !errors.Is(err, ErrRange) {
			t.Errorf("%v: %v", p, err)
		}
	}
	for v, want := range map[float64]error{0: ErrNotPositive, -1: ErrNotPositive, math.Inf(1): ErrNotFinite, math.Inf(-1): ErrNotFinite} {
		if _, err := FitPairs(4, 1, []Pair{{0, 1, 0, v}}); !errors.Is(err, want) {
			t.Errorf("%v: %v", v, err)
		}
	}
	if _, err := FitPairs(4, 1, []Pair{{0, 1, 0, math.NaN()}}); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN: %v", err)
	}
}

// What identify finds is compared with the rank of the dense matrix.
func TestPairsIdentifyAgainstDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, distances := rapid.IntRange(2, 9).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "distances")
		n := rapid.IntRange(1, 20).Draw(t, "pairs")
		var list []Pair
		var rows [][]float64
		there := map[int]bool{}
		for range n {
			a := rapid.IntRange(0, nodes-1).Draw(t, "a")
			b := (a + rapid.IntRange(1, nodes-1).Draw(t, "b")) % nodes
			d := rapid.IntRange(0, distances-1).Draw(t, "d")
			list = append(list, Pair{a, b, d, 1})
			row := make([]float64, nodes+distances)
			row[a], row[b], row[nodes+d] = 1, 1, 1
			rows = append(rows, row)
			there[a], there[b], there[nodes+d] = true, true, true
		}
		rank := 0
		for col := range nodes + distances {
			best := rank
			for i := rank; i < len(rows); i++ {
				if math.Abs(rows[i][col]) > math.Abs(rows[best][col]) {
					best = i
				}
			}
			if rank == len(rows) || math.Abs(rows[best][col]) < 1e-9 {
				continue
			}
			rows[rank], rows[best] = rows[best], rows[rank]
			for i := rank + 1; i < len(rows); i++ {
				f := rows[i][col] / rows[rank][col]
				for k := range rows[i] {
					rows[i][k] -= f * rows[rank][k]
				}
			}
			rank++
		}
		_, err := FitPairs(nodes, distances, list)
		var u *Untold
		if open := len(there) - rank; errors.As(err, &u) != (open > 1) {
			t.Errorf("%d directions are open: %v", open, err)
		}
	})
}

func TestPairsScaleAndErrors(t *testing.T) {
	t.Parallel()
	const noise = 0.03
	for _, c := range []struct{ nodes, rounds, runs int }{{5, 0, 200}, {8, 6, 200}, {8, 0, 200}, {16, 6, 100}, {128, 7, 6}} {
		r := seeded(uint64(100 + c.nodes))
		sum, told, square, count := 0.0, 0.0, 0.0, 0.0
		for range c.runs {
			s := newSite(r, c.nodes, c.nodes, 0.02, noise)
			list := s.all(r)
			if c.rounds > 0 {
				list = s.rounds(r, c.rounds)
			}
			f, err := FitPairs(c.nodes, 1, list)
			if err != nil {
				continue // chance made rounds that cannot tell
			}
			count++
			sum += f.Scale
			m, e := 0.0, 0.0
			for i := range f.Nodes {
				m += s.effect[i] / float64(c.nodes)
				e += f.Nodes[i] / float64(c.nodes)
			}
			for i := range min(c.nodes, 24) {
				d := f.Nodes[i] - e - (s.effect[i] - m)
				square += d * d
				told += f.NodeError(i) * f.NodeError(i)
			}
		}
		if count < 0.9*float64(c.runs) {
			t.Errorf("%+v: only %v could be told", c, count)
		}
		t.Logf("%+v: scale %.2f of the noise, errors told %.2f of those made", c, sum/count/noise, math.Sqrt(told/square))
		if v := sum / count / noise; v < 0.8 || v > 1.25 {
			t.Errorf("%+v: the scale is %v of the noise", c, v)
		}
		if v := math.Sqrt(told / square); v < 0.75 || v > 1.35 {
			t.Errorf("%+v: errors told are %v of those made", c, v)
		}
	}
}

// One wrong link must not pull its nodes along, however wrong it is.
func TestPairsBearWildLinks(t *testing.T) {
	for _, factor := range []float64{1e-6, 0.1, 0.5, 2, 1e6} {
		r := seeded(9)
		s := newSite(r, 16, 16, 0.01, 0.01)
		list := s.rounds(r, 6)
		before := mustFit(t, 16, 1, list)
		list[4].Value *= factor
		after := mustFit(t, 16, 1, list)
		for i := range after.Nodes {
			if d := math.Abs(after.Nodes[i] - before.Nodes[i]); d > 0.02 {
				t.Errorf("a link off by %v moves node %d by %v", factor, i, d)
			}
		}
		if d := math.Abs(after.Residuals[4] - before.Residuals[4] - math.Log(factor)); d > 0.03 {
			t.Errorf("a link off by %v is told as %v", factor, after.Residuals[4])
		}
	}
}

func BenchmarkFitPairs(b *testing.B) {
	for _, c := range []struct{ nodes, rounds int }{{16, 15}, {1024, 10}, {1024, 24}} {
		b.Run(fmt.Sprintf("%d nodes, %d pairs", c.nodes, c.nodes*c.rounds/2), func(b *testing.B) {
			r := seeded(1)
			s := newSite(r, c.nodes, 32, 0.02, 0.03)
			list := s.rounds(r, c.rounds)
			for i := range list {
				if r.IntN(100) == 0 {
					list[i].Value /= 2
				}
			}
			for b.Loop() {
				mustFit(b, c.nodes, 2, list)
			}
		})
	}
}
