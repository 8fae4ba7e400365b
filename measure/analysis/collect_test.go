package analysis_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/muster-hpc/muster/measure/analysis"
)

func sample(metric, host, peer string, value float64) analysis.Sample {
	return analysis.Sample{Metric: metric, Unit: "B/s", Host: host, Peer: peer, Value: value, Min: value - 1, Max: value + 1, N: 2, Rank: -1, PeerRank: -1, Round: -1}
}

func TestCollect(t *testing.T) {
	t.Parallel()
	nodes := []analysis.Node{
		{Name: "n01", Class: "a", Place: analysis.Place{Host: "h1", Rack: "r1"}},
		{Name: "n02", Class: "a", Place: analysis.Place{Host: "h2", Rack: "r1"}},
		{Name: "n03", Class: "b", Place: analysis.Place{Host: "h3", Rack: "r2"}},
	}
	launches := []analysis.Launch{
		{Samples: []analysis.Sample{
			sample("stream.triad", "n01", "", 10), sample("stream.triad", "n01", "", 20), // two ranks: one replication
			sample("stream.triad", "n02", "", 12), sample("stream.triad", "n03", "", 30), sample("stream.triad", "n99", "", 5),
		}, Findings: []analysis.Sample{{Metric: "dgemm", Host: "n02", Check: "wrong product"}, {Metric: "dgemm", Host: "n98"}}},
		{Samples: []analysis.Sample{
			sample("pair.bandwidth", "n01", "n02", 5), sample("pair.bandwidth", "n02", "n01", 7), // both ways: one pair
			sample("pair.bandwidth", "n03", "n01", 4), sample("alltoall", "", "", 3),
		}},
		{Samples: []analysis.Sample{sample("stream.triad", "n01", "", 11)}},
	}
	got := analysis.Collect(nodes, launches)
	want := analysis.Collected{
		Nodes: []analysis.Figure{
			{Name: "stream.triad", Unit: "B/s", Series: []analysis.Series{
				{Node: 0, Launches: []float64{15, 11}, Min: 9, Max: 21, Samples: 6}, {Node: 1, Launches: []float64{12}, Min: 11, Max: 13, Samples: 2},
			}},
			{Name: "stream.triad", Unit: "B/s", Series: []analysis.Series{{Node: 2, Launches: []float64{30}, Min: 29, Max: 31, Samples: 2}}},
		},
		Fabrics: []analysis.Fabric{{Name: "pair.bandwidth", Unit: "B/s", Nodes: 3, Links: []analysis.Link{
			{Pair: analysis.Pair{A: 0, B: 1}, Distance: analysis.SameRack, Launches: []float64{5}, Which: []int{1}},
			{Pair: analysis.Pair{A: 0, B: 2}, Distance: analysis.SameSite, Launches: []float64{4}, Which: []int{1}},
		}}},
		Whole:     []analysis.Figure{{Name: "alltoall", Unit: "B/s", Series: []analysis.Series{{Node: -1, Launches: []float64{3}, Min: 2, Max: 4, Samples: 2}}}},
		Wrong:     []analysis.Wrong{{Node: 1, Peer: -1, Launch: 0, Metric: "dgemm", Text: "wrong product"}},
		Strangers: []string{"n98", "n99"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nnot\n%+v", got, want)
	}
	// The order in which samples come does not matter.
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		for i := range launches {
			s := launches[i].Samples
			r.Shuffle(len(s), func(a, b int) { s[a], s[b] = s[b], s[a] })
		}
		if again := analysis.Collect(nodes, launches); !reflect.DeepEqual(again, want) {
			t.Fatalf("in another order: %+v", again)
		}
	}
}
