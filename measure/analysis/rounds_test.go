package analysis_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/analysis"
)

func drawPlaces(r *rapid.T, least, most int) []analysis.Place {
	places := make([]analysis.Place, rapid.IntRange(least, most).Draw(r, "nodes"))
	racks := rapid.IntRange(1, 5).Draw(r, "racks")
	hosts := rapid.IntRange(0, 8).Draw(r, "hosts")
	for i := range places {
		rack := rapid.IntRange(1, racks).Draw(r, "rack")
		places[i].Rack = fmt.Sprint("r", rack)
		if host := rapid.IntRange(0, hosts).Draw(r, "host"); host > 0 {
			places[i].Host = fmt.Sprintf("r%d-h%d", rack, host)
		}
	}
	return places
}

// disjoint fails when somebody has two partners in a round, or himself.
func disjoint(r *rapid.T, n int, rounds [][]analysis.Pair) {
	for _, round := range rounds {
		busy := map[int]bool{}
		for _, p := range round {
			if p.A >= p.B || p.A < 0 || p.B >= n || busy[p.A] || busy[p.B] {
				r.Fatalf("%d nodes: %v in %v", n, p, round)
			}
			busy[p.A], busy[p.B] = true, true
		}
	}
}

func TestRoundsOfFewMeetAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		places := drawPlaces(r, 0, 16)
		n := len(places)
		rounds := analysis.Rounds(places, rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1)))
		disjoint(r, n, rounds)
		met := map[analysis.Pair]int{}
		for _, round := range rounds {
			for _, p := range round {
				met[p]++
			}
		}
		if len(met) != n*(n-1)/2 || len(rounds) > max(0, n-1+n%2) {
			r.Fatalf("%d nodes: %d pairs in %d rounds", n, len(met), len(rounds))
		}
		for p, times := range met {
			if times != 1 {
				r.Fatalf("%v met %d times", p, times)
			}
		}
	})
}

func TestRoundsOfMany(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		places := drawPlaces(r, 17, 300)
		n := len(places)
		rounds := analysis.Rounds(places, rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1)))
		disjoint(r, n, rounds)
		matchings := max(6, bits.Len(uint(n-1)))
		if len(rounds) < matchings || len(rounds) > matchings+3 {
			r.Fatalf("%d nodes: %d rounds", n, len(rounds))
		}
		full := 0
		for _, round := range rounds {
			if len(round) == n/2 {
				full++
			}
		}
		if full < matchings {
			r.Fatalf("%d nodes: only %d rounds in which nobody waits", n, full)
		}
	})
}

// Of every distance that occurs often there is a round of its own.
func TestEveryDistanceHasARound(t *testing.T) {
	t.Parallel()
	var racks, tree []analysis.Place
	for rack := range 4 {
		for host := range 4 {
			for range 2 {
				racks = append(racks, analysis.Place{Rack: fmt.Sprint(rack), Host: fmt.Sprint(rack, "-", host)})
			}
		}
	}
	for centre := range 2 {
		for leaf := range 4 {
			for range 4 {
				tree = append(tree, analysis.Place{Path: analysis.PathOf([]muster.Stand{
					{Kind: muster.StandDataCentre, Name: fmt.Sprint(centre)}, {Kind: muster.StandLeaf, Name: fmt.Sprint(centre, "-", leaf)},
				})})
			}
		}
	}
	for _, places := range [][]analysis.Place{racks, tree} {
		occur := map[analysis.Distance]bool{}
		for i := range places {
			for j := range i {
				occur[analysis.Apart(places[i], places[j])] = true
			}
		}
		if len(occur) != 3 {
			t.Fatalf("distances: %v", occur)
		}
		rounds := analysis.Rounds(places, rand.New(rand.NewPCG(1, 2)))
		for d := range occur {
			if !slices.ContainsFunc(rounds, func(round []analysis.Pair) bool {
				return len(round) == len(places)/2 && !slices.ContainsFunc(round, func(p analysis.Pair) bool { return analysis.Apart(places[p.A], places[p.B]) != d })
			}) {
				t.Errorf("there is no round for the distance %q", d)
			}
		}
	}
}

func TestSuspectsMeetGoodOnes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(r, "nodes")
		var suspects, good []int
		for i := range n {
			switch rapid.IntRange(0, 3).Draw(r, "is") {
			case 0:
				suspects = append(suspects, i)
			case 1, 2:
				good = append(good, i)
			}
		}
		partners := rapid.IntRange(1, 3).Draw(r, "partners")
		rounds := analysis.Suspects(suspects, good, partners, rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1)))
		disjoint(r, n, rounds)
		met := map[int]map[int]bool{}
		for _, round := range rounds {
			for _, p := range round {
				s, g := p.A, p.B
				if !slices.Contains(suspects, s) {
					s, g = g, s
				}
				if !slices.Contains(suspects, s) || !slices.Contains(good, g) {
					r.Fatalf("%v is no suspect with a good one", p)
				}
				if met[s] == nil {
					met[s] = map[int]bool{}
				}
				met[s][g] = true
			}
		}
		for _, s := range suspects {
			if want := min(partners, len(good)); len(met[s]) != want {
				r.Fatalf("suspect %d met %d, not %d", s, len(met[s]), want)
			}
		}
	})
}

// The number of rounds hardly grows with the nodes, whose pairs grow with their
// square.
func TestNumberOfRounds(t *testing.T) {
	t.Parallel()
	before := 0
	for _, n := range []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024} {
		places := racks(n, 32)
		rounds := analysis.Rounds(places, rand.New(rand.NewPCG(1, uint64(n))))
		pairs := map[analysis.Pair]bool{}
		for _, r := range rounds {
			for _, p := range r {
				pairs[p] = true
			}
		}
		t.Logf("%4d nodes: %2d rounds, %5d of %6d pairs", n, len(rounds), len(pairs), n*(n-1)/2)
		if n > 16 && len(rounds) > 20 || n <= 16 && len(rounds) != n-1 {
			t.Errorf("%d rounds for %d nodes, %d for half of them", len(rounds), n, before)
		}
		before = len(rounds)
	}
}
