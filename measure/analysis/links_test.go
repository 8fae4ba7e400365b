package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
	"github.com/muster-hpc/muster/measure/analysis"
)

// wires pretends to measure pairs.
type wires struct {
	places        []analysis.Place
	spread, noise float64 // of nodes and of pairs
	node          map[int]float64
	link          map[analysis.Pair]float64
	tier          map[analysis.Distance]float64
	less          bool
	history       bool
}

func racks(nodes, each int) []analysis.Place {
	places := make([]analysis.Place, nodes)
	for i := range places {
		places[i] = analysis.Place{Host: fmt.Sprint("h", i), Rack: fmt.Sprint("r", i/each)}
	}
	return places
}

func (w wires) draw(r *rand.Rand) analysis.Fabric {
	f := analysis.Fabric{Name: "pair.bandwidth", Unit: "B/s", Size: 1 << 20, Less: w.less, Nodes: len(w.places)}
	base := map[analysis.Distance]float64{analysis.SameHost: 1, analysis.SameRack: 0, analysis.SameSite: -0.3}
	if w.history {
		f.History = map[analysis.Distance]*analysis.History{}
		for d, v := range base {
			if w.less {
				v = -v
			}
			f.History[d] = &analysis.History{Median: 1e9 * math.Exp(v), Spread: stat.Scale{Value: math.Hypot(w.noise, math.Sqrt2*w.spread), DF: 60, N: 120}}
		}
	}
	nodes := make([]float64, len(w.places))
	for i := range nodes {
		nodes[i] = w.spread*r.NormFloat64() + math.Log(1-w.node[i])
	}
	for _, round := range analysis.Rounds(w.places, r) {
		for _, p := range round {
			d := analysis.Apart(w.places[p.A], w.places[p.B])
			v := base[d] + nodes[p.A] + nodes[p.B] + math.Log(1-w.link[p]) + math.Log(1-w.tier[d]) + w.noise*r.NormFloat64()
			l := analysis.Link{Pair: p, Distance: d}
			for i := range 6 {
				l.Which = append(l.Which, i)
				x := v + 0.005*r.NormFloat64()
				if w.less {
					x = -x
				}
				l.Launches = append(l.Launches, 1e9*math.Exp(x))
			}
			f.Links = append(f.Links, l)
		}
	}
	return f
}

// blamed are the nodes, links and tiers that are low.
func blamed(t *testing.T, f analysis.Fabric) (nodes []int, links []analysis.Pair, tiers []analysis.Distance) {
	t.Helper()
	j, err := analysis.LinkRules(muster.ValidateQuick).Fabric(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range j.Nodes {
		if n.Metric.Verdict == muster.GradeLow {
			nodes = append(nodes, n.Node)
		}
	}
	for _, l := range j.Links {
		if l.Metric.Verdict == muster.GradeLow {
			links = append(links, l.Pair)
		}
	}
	for _, d := range j.Tiers {
		if d.Metric.Verdict == muster.GradeLow {
			tiers = append(tiers, d.Distance)
		}
	}
	return nodes, links, tiers
}

// Distances have figures by launches, with history and without, of two nodes as of
// many; they can be certified.
func TestTiersHaveLaunches(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 1))
	for _, n := range []int{2, 3, 4, 8, 40} {
		for _, less := range []bool{false, true} {
			w := wires{places: racks(n, 4), spread: 0.02, noise: 0.01, less: less, history: n == 8}
			j, err := analysis.LinkRules(muster.ValidateQuick).Fabric(w.draw(r))
			if err != nil || len(j.Tiers) == 0 {
				t.Fatalf("%d nodes: %d tiers, %v", n, len(j.Tiers), err)
			}
			for _, tier := range j.Tiers {
				m := tier.Metric
				if len(m.ByLaunch) != 6 || m.Launches != 6 || m.Median != stat.Median(m.ByLaunch) || m.Min > slices.Min(m.ByLaunch) || m.Max < slices.Max(m.ByLaunch) || m.Samples < 6 {
					t.Errorf("%d nodes, less %v: %+v", n, less, m)
				}
				if known := m.Reference != nil; known != w.history || known == (m.Verdict == muster.GradeUnknown) {
					t.Errorf("%d nodes: verdict %s, reference %v", n, m.Verdict, m.Reference)
				}
			}
		}
	}
}

// What is most often nothing is summed up and not compared, between two nodes as
// between many; so is what nobody expected to be nothing.
func TestNothingBetweenNodes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 4, 12} {
		for name, unit := range map[string]string{"net.udp.loss": "1", "net.udp.jitter": "s", "pair.share": "1"} {
			f := wires{places: racks(n, 4), spread: 0.02, noise: 0.01, less: true, history: true}.draw(rand.New(rand.NewPCG(uint64(n), 5)))
			f.Name, f.Unit = name, unit
			for i := range f.Links {
				for k := range f.Links[i].Launches {
					f.Links[i].Launches[k] = 0
				}
			}
			f.Links[0].Launches[2] = 0.25
			j, err := analysis.LinkRules(muster.ValidateQuick).Fabric(f)
			if err != nil || len(j.Tiers) == 0 || len(j.Links) != len(f.Links) || len(j.Nodes) > 0 {
				t.Fatalf("%s, %d nodes: %+v, %v", name, n, j, err)
			}
			highest := 0.0
			for _, tier := range j.Tiers {
				m := tier.Metric
				highest = max(highest, m.Max)
				if m.Verdict != muster.GradeUnknown || len(m.ByLaunch) != m.Launches || m.Median != stat.Median(m.ByLaunch) || m.Min != 0 || m.Samples < m.Launches || !math.IsNaN(tier.P) {
					t.Errorf("%s, %d nodes: %+v", name, n, tier)
				}
			}
			if highest != 0.25 {
				t.Errorf("%s, %d nodes: the worst is lost: %g", name, n, highest)
			}
		}
	}
}

func TestWhoIsToBlame(t *testing.T) {
	t.Parallel()
	const runs = 20
	for _, less := range []bool{false, true} {
		for _, size := range []int{12, 48} {
			r := rand.New(rand.NewPCG(uint64(size), 2))
			node, link, tier, wrong := 0, 0, 0, 0
			for range runs {
				w := wires{places: racks(size, 6), spread: 0.02, noise: 0.03, less: less, history: true}
				w.node = map[int]float64{5: 0.4}
				nodes, links, tiers := blamed(t, w.draw(r))
				if slices.Contains(nodes, 5) {
					node++
				}
				wrong += len(links) + len(tiers)
				w.node, w.tier = nil, map[analysis.Distance]float64{analysis.SameSite: 0.3}
				nodes, links, tiers = blamed(t, w.draw(r))
				if slices.Contains(tiers, analysis.SameSite) {
					tier++
				}
				wrong += len(links) + len(nodes)
				// Every pair is measured only in the small one.
				w.tier, w.link = nil, map[analysis.Pair]float64{{A: 2, B: 4}: 0.5}
				nodes, links, tiers = blamed(t, w.draw(r))
				if slices.Contains(links, analysis.Pair{A: 2, B: 4}) {
					link++
				}
				wrong += len(nodes) + len(tiers)
			}
			if node < runs*9/10 || tier < runs*9/10 || size <= 16 && link < runs*9/10 {
				t.Errorf("%d nodes, less %v: of %d, slow node found %d times, slow tier %d, slow link %d", size, less, runs, node, tier, link)
			}
			// Of what is suspected beside the culprit, one in twenty on average.
			if wrong > runs {
				t.Errorf("%d nodes, less %v: %d times the wrong one is blamed", size, less, wrong)
			}
		}
	}
}

func TestAHealthyFabric(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 2))
	const runs = 60
	for _, size := range []int{2, 3, 4, 8, 40} {
		some := 0
		for range runs {
			nodes, links, tiers := blamed(t, wires{places: racks(size, 8), spread: 0.02, noise: 0.03, history: true}.draw(r))
			if len(nodes)+len(links)+len(tiers) > 0 {
				some++
			}
		}
		// With a chance of 8 % (of eight nodes; 5 % of many), more is seen once in 1,000.
		if some > 12 {
			t.Errorf("%d nodes: something is found in %d of %d runs", size, some, runs)
		}
	}
}

// Of two and three nodes nobody can tell who it is, but what they reach can be
// held against their class.
func TestFewNodes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{2, 3} {
		w := wires{places: racks(size, 8), spread: 0.01, noise: 0.01, history: true, node: map[int]float64{0: 0.5}}
		j, err := analysis.LinkRules(muster.ValidateQuick).Fabric(w.draw(r))
		if err != nil || j.Why == "" || len(j.Nodes) > 0 {
			t.Fatalf("%+v, %v", j, err)
		}
		for _, l := range j.Links {
			if slow := l.A == 0; slow != (l.Metric.Verdict == muster.GradeLow) {
				t.Errorf("%d nodes: %+v", size, l)
			}
		}
		w.history = false
		if j, err = analysis.LinkRules(muster.ValidateQuick).Fabric(w.draw(r)); err != nil || j.Links[0].Metric.Verdict != muster.GradeUnknown {
			t.Errorf("%+v, %v", j, err)
		}
	}
}
