package analysis_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

// Whatever the nodes are, a plan of sweeps has what was asked for on nodes that are
// there, pairs that are disjoint, and stays within its bounds.
func TestPlanSweeps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		places := drawPlaces(r, 1, 300)
		cores, crowd := rapid.IntRange(0, 200).Draw(r, "cores"), rapid.IntRange(1, 3).Draw(r, "crowd")
		seed := rapid.Uint64().Draw(r, "seed")
		runs, left := analysis.PlanSweeps(places, cores, muster.ValidateFull, seed, crowd)
		again, same := analysis.PlanSweeps(places, cores, muster.ValidateFull, seed, crowd)
		if !reflect.DeepEqual(runs, again) || !reflect.DeepEqual(left, same) {
			r.Fatal("the same seed gave another plan")
		}
		times := map[analysis.Mode]int{}
		largest := 0
		for _, run := range runs {
			if !run.Mode.Sweeps() || run.Replicate != times[run.Mode] || run.Budget <= 0 || len(run.Nodes)*max(1, run.PerNode) > 4096 && run.PerNode > 2 {
				r.Fatalf("%+v", run)
			}
			times[run.Mode]++
			nodes := slices.Sorted(slices.Values(run.Nodes))
			if n := len(slices.Compact(slices.Clone(nodes))); n != len(nodes) || nodes[0] < 0 || nodes[n-1] >= len(places) {
				r.Fatalf("nodes %v of %d", run.Nodes, len(places))
			}
			disjoint(r, len(places), run.Rounds)
			switch run.Mode {
			case analysis.Sizes, analysis.Streams:
				if len(run.Rounds) == 0 || len(run.Rounds) > 4 || len(nodes) != len(places) {
					r.Fatalf("%d rounds, %d nodes", len(run.Rounds), len(nodes))
				}
			case analysis.Clients:
				if len(run.Nodes)*run.PerNode != 16 {
					r.Fatalf("%d clients", len(run.Nodes)*run.PerNode)
				}
			case analysis.Scale:
				if run.PerNode == 0 {
					largest = max(largest, len(nodes))
				}
			}
		}
		if n := times[analysis.Inside]; n != times[analysis.Clients] || n == 0 || len(places) > 1 && (largest != len(places) || times[analysis.Sizes] != n || times[analysis.Streams] != n) {
			r.Fatalf("%v of %d nodes, the largest of %d", times, len(places), largest)
		}
		for _, o := range left {
			if o.What != "scale" || o.Text == "" {
				r.Fatalf("%+v", o)
			}
		}
		if quick, left := analysis.PlanSweeps(places, cores, muster.ValidateQuick, seed, crowd); len(quick)+len(left) > 0 {
			r.Fatal("quick validation has sweeps")
		}
	})
}

// By how many nodes pairs and rings are measured, and what is left out is named.
func TestPlanSweepsCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes, cores, crowd int
		single, together    string
		left                string
	}{
		{1, 1, 1, "[]", "[]", ""},
		{1, 8, 1, "[]", "[1]", ""},
		{2, 8, 1, "[2]", "[1 2]", ""},
		{6, 0, 1, "[2 4 6]", "[]", "all cores were left out, because nobody knows how many"},
		{6, 8, 2, "[2 4 6]", "[]", "all cores were left out, because nodes share them"},
		{32, 8, 1, "[2 4 8 16 32]", "[1 2 4 8 16 32]", ""},
		{100, 64, 1, "[2 8 32 100]", "[1 2 8 32]", "of 4, 16, 64 nodes were left out|all cores of 100 nodes were left out: at most 4096"},
	} {
		runs, left := analysis.PlanSweeps(make([]analysis.Place, c.nodes), c.cores, muster.ValidateFull, 1, c.crowd)
		single, together := []int{}, []int{}
		for _, run := range runs {
			switch {
			case run.Mode != analysis.Scale:
			case run.PerNode == 0:
				single = append(single, len(run.Nodes))
			case run.PerNode == c.cores:
				together = append(together, len(run.Nodes))
			default:
				t.Errorf("%d ranks a node", run.PerNode)
			}
		}
		kinds := func(list []int) string { slices.Sort(list); return fmt.Sprint(slices.Compact(list)) }
		if kinds(single) != c.single || kinds(together) != c.together {
			t.Errorf("%+v: %v, %v", c, kinds(single), kinds(together))
		}
		var texts []string
		for _, o := range left {
			texts = append(texts, o.Text)
		}
		for i, want := range strings.Split(c.left, "|") {
			if (want == "") != (len(texts) == 0) || want != "" && (i >= len(texts) || !strings.Contains(texts[i], want)) {
				t.Errorf("%+v: %q", c, texts)
			}
		}
	}
}

// Pairs that no launch measured are named, up to a number.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	nodes := func(n int) []analysis.Node {
		var list []analysis.Node
		for i := range n {
			list = append(list, analysis.Node{Name: fmt.Sprintf("n%02d", i+1)})
		}
		return list
	}
	launch := func(mode analysis.Mode, metric string, pairs ...[2]string) analysis.Launch {
		l := analysis.Launch{Mode: mode}
		for _, p := range pairs {
			l.Samples = append(l.Samples, analysis.Sample{Metric: metric, Host: p[0], Peer: p[1]})
		}
		return l
	}
	got := analysis.LeftOut(nodes(4), []analysis.Launch{
		launch(analysis.Sizes, "size.latency", [2]string{"n01", "n02"}, [2]string{"n04", "n03"}),
		launch(analysis.Sizes, "size.latency", [2]string{"n01", "n03"}, [2]string{"n09", "n02"}, [2]string{"n01", "n01"}),
		launch(analysis.Streams, "streams.tcp.bandwidth", [2]string{"n01", "n02"}),
	})
	want := []muster.Omission{
		{What: "size", Text: "3 of 6 pairs were not measured by size of the message: n01-n04, n02-n03, n02-n04"},
		{What: "streams", Text: "5 of 6 pairs were not measured by connections and rates: n01-n03, n01-n04, n02-n03, n02-n04, n03-n04"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := analysis.LeftOut(nodes(2), []analysis.Launch{launch(analysis.Sizes, "size.latency", [2]string{"n02", "n01"})}); got != nil {
		t.Errorf("%+v", got)
	}
	got = analysis.LeftOut(nodes(60), []analysis.Launch{launch(analysis.Sizes, "size.latency", [2]string{"n01", "n02"})})
	if len(got) != 1 || !strings.HasPrefix(got[0].Text, "1769 of 1770 pairs ") || !strings.HasSuffix(got[0].Text, "n01-n42 and 1729 more") {
		t.Errorf("%+v", got)
	}
}

// What launches showed becomes curves: by distance, ranks and size, with medians over
// launches, means and extremes; and what is of no node of ours is left out.
func TestSweeps(t *testing.T) {
	t.Parallel()
	nodes := []analysis.Node{{Name: "n01", Place: analysis.Place{Rack: "a"}}, {Name: "n02", Place: analysis.Place{Rack: "a"}}, {Name: "n03", Place: analysis.Place{Rack: "b"}}}
	ranks := func(hosts ...string) (list []analysis.RankFacts) {
		for i, h := range hosts {
			list = append(list, analysis.RankFacts{Rank: i, Host: h})
		}
		return list
	}
	of := func(metric, unit, host, peer string, size int64, v float64) analysis.Sample {
		return analysis.Sample{Metric: metric, Unit: unit, Host: host, Peer: peer, Size: size, Value: v, Mean: 2 * v, Min: v / 2, Max: 4 * v, N: 5}
	}
	streams, offered := of("streams.tcp.bandwidth", "B/s", "n01", "n02", 0, 9), of("streams.udp.loss", "1", "n01", "n02", 1400, 0)
	streams.Streams, offered.Offered = 4, 125000
	whole, single := analysis.Sweeps(nodes, []analysis.Launch{
		{Mode: analysis.Sizes, Samples: []analysis.Sample{
			of("size.latency", "s", "n01", "n02", 8, 1), of("size.latency", "s", "n02", "n01", 8, 3), of("size.latency", "s", "n01", "n03", 8, 7),
			of("size.latency", "s", "n01", "n02", 1, 1), of("size.latency", "s", "n01", "elsewhere", 8, 100),
		}},
		{Mode: analysis.Sizes, Samples: []analysis.Sample{of("size.latency", "s", "n02", "n01", 8, 4)}},
		{Mode: analysis.Pairs, Samples: []analysis.Sample{of("pair.latency", "s", "n02", "n01", 8, 4)}},
		{Mode: analysis.Inside, Samples: []analysis.Sample{of("inside.cache.both", "B/s", "n02", "", 64, 4), of("inside.cache.both", "B/s", "n01", "", 64, 8)}},
		{Mode: analysis.Scale, Ranks: ranks("n01", "n01", "n02", "n02"), Samples: []analysis.Sample{
			of("scale.random.latency", "s", "", "", 8, 2), of("scale.pingpong.latency", "s", "n01", "n01", 8, 2), of("scale.pingpong.latency", "s", "n01", "n02", 8, 2),
		}},
		{Mode: analysis.Scale, Ranks: ranks("n01", "n02", "n03"), Samples: []analysis.Sample{of("scale.random.latency", "s", "", "", 8, 2)}},
		{Mode: analysis.Clients, Ranks: ranks("n01", "n01", "n02", "n02"), Samples: []analysis.Sample{of("clients.write.open", "s", "", "", 1<<20, 2)}},
		{Mode: analysis.Streams, Ranks: ranks("n01", "n02"), Samples: []analysis.Sample{streams, offered}},
	})
	var got []string
	for _, s := range whole {
		for _, p := range s.Points {
			got = append(got, fmt.Sprintf("%s %s %s=%g size=%d ranks=%d %s: %d/%d %g %g %g %g", s.Metric, s.Unit, s.Over, p.At, s.Size, s.Ranks, s.Distance, p.Launches, p.Samples, p.Median, p.Mean, p.Min, p.Max))
		}
	}
	want := []string{
		"clients.write.open s clients=4 size=1048576 ranks=2 : 1/5 2 4 1 8",
		"inside.cache.both B/s size=64 size=0 ranks=0 : 1/10 6 12 2 32",
		"scale.pingpong.latency s nodes=2 size=8 ranks=2 : 1/5 2 4 1 8",
		"scale.pingpong.latency s nodes=2 size=8 ranks=2 node: 1/5 2 4 1 8",
		"scale.random.latency s nodes=3 size=8 ranks=1 : 1/5 2 4 1 8",
		"scale.random.latency s nodes=2 size=8 ranks=2 : 1/5 2 4 1 8",
		"size.latency s size=1 size=0 ranks=0 rack: 1/5 1 2 0.5 4",
		"size.latency s size=8 size=0 ranks=0 rack: 2/15 3 5.333333333333333 0.5 16",
		"size.latency s size=8 size=0 ranks=0 site: 1/5 7 14 3.5 28",
		"streams.tcp.bandwidth B/s streams=4 size=0 ranks=0 rack: 1/5 9 18 4.5 36",
		"streams.udp.loss 1 offered=125000 size=1400 ranks=0 rack: 1/5 0 0 0 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if len(single) != 2 || single[0][0].Points[0].Median != 8 || single[1][0].Points[0].Median != 4 {
		t.Errorf("%+v", single)
	}
}

// Nothing that is measured over a range is judged, or changes what is.
func TestSweepsAreNotJudged(t *testing.T) {
	t.Parallel()
	nodes := []analysis.Node{{Name: "n01"}, {Name: "n02"}}
	l := analysis.Launch{
		Mode:     analysis.Scale,
		Samples:  []analysis.Sample{{Metric: "scale.pingpong.latency", Unit: "s", Host: "n01", Peer: "n01", Value: 1, N: 1}},
		Findings: []analysis.Sample{{Metric: "scale.pingpong.latency", Host: "n02", Peer: "n02", Check: "another answer"}},
	}
	c := analysis.Collect(nodes, []analysis.Launch{l})
	if len(c.Nodes)+len(c.Fabrics)+len(c.Whole) != 0 {
		t.Errorf("%+v", c)
	}
	if len(c.Wrong) != 1 || c.Wrong[0].Node != 1 || c.Wrong[0].Peer != -1 { // but what is wrong is found
		t.Errorf("%+v", c.Wrong)
	}
	if _, err := analysis.ParseTargets("* size.latency 8us\n"); err == nil {
		t.Error("a target of what is not judged")
	}
}
