package analysis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
)

// pairsOf are figures of all pairs of nodes that are plugged into these leaves: 1 Gb/s within one, 100 Mb/s between
// two, and 20 % of noise.
func figuresOf(leaves []string, metric string) (list []muster.PairFigure) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range leaves {
		for k := range i {
			v := 125e6 * (0.9 + 0.2*r.Float64())
			if leaves[i] != leaves[k] {
				v /= 10
			}
			if metric == "pair.latency" {
				v = 1000 / v
			}
			list = append(list, muster.PairFigure{Metric: metric, Size: 8, From: fmt.Sprintf("n%02d", k), To: fmt.Sprintf("n%02d", i), Value: v})
		}
	}
	return list
}

func standing(leaves ...string) []Node {
	var nodes []Node
	for i, leaf := range leaves {
		stands := []muster.Stand{{Name: "core", Kind: muster.StandSpine}, {Name: leaf, Kind: muster.StandLeaf}}
		nodes = append(nodes, Node{Name: fmt.Sprintf("n%02d", i), Place: Place{Host: "h", Path: PathOf(stands)}})
	}
	return nodes
}

// A node that is registered on one leaf and plugged into another is named, and no other; where all is as it is
// registered it is confirmed. Where nothing tells leaves apart nothing is said.
func TestStandings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		registered, plugged string // a letter for each node
		misplaced           string // n03 B A
		confirmed           int
	}{
		"as registered":           {"AAABBB", "AAABBB", "", 6},
		"one is not":              {"AAABBB", "AAABBA", "n05 B A", 0},
		"of four":                 {"AABB", "AAAB", "n02 B A", 0},
		"alone on its leaf":       {"AABBC", "AABBA", "n04 C A", 2},
		"one leaf":                {"AAAA", "AAAA", "", 0},
		"leaves that are as near": {"AABB", "AAAA", "", 0},
		"two nodes":               {"AB", "AB", "", 0},
	} {
		for _, metric := range []string{"pair.bandwidth", "pair.latency"} {
			nodes := standing(strings.Split(c.registered, "")...)
			pairs := figuresOf(strings.Split(c.plugged, ""), metric)
			var got []string
			confirmed := 0
			for _, s := range Standings(nodes, pairs) {
				if s.Measures == s.Registered {
					confirmed++
				} else {
					got = append(got, fmt.Sprintf("%s %s %s", nodes[s.Node].Name, s.Registered, s.Measures))
				}
			}
			if strings.Join(got, ", ") != c.misplaced || confirmed < c.confirmed {
				t.Errorf("%s, %s: %q, %d confirmed", name, metric, got, confirmed)
			}
		}
	}
	f := MisplacedFindings(standing("A", "A", "A", "B", "B", "B"), figuresOf([]string{"A", "A", "A", "B", "B", "A"}, "pair.bandwidth"))
	if len(f) != 1 || f[0].Code != Misplaced || !strings.HasPrefix(f[0].Text, "n05 is registered on B and measures as A") {
		t.Errorf("%+v", f)
	}
}

func TestApartByTree(t *testing.T) {
	t.Parallel()
	path := func(words ...string) Place {
		var stands []muster.Stand
		for _, w := range words {
			kind, name, _ := strings.Cut(w, " ")
			stands = append(stands, muster.Stand{Kind: muster.StandKind(kind), Name: name})
		}
		return Place{Rack: "r1", Path: PathOf(stands)}
	}
	a := path("datacentre x", "room r", "spine s", "leaf l", "chassis c")
	for _, c := range []struct {
		b    Place
		want Distance
	}{
		{a, muster.SameChassis},
		{path("datacentre x", "room r", "spine s", "leaf l", "chassis d"), muster.SameLeaf},
		{path("datacentre x", "room r", "spine s", "leaf m"), muster.SameSpine},
		{path("datacentre x", "room r", "spine t", "leaf m"), muster.SameRoom},
		{path("datacentre x", "room q", "leaf m"), muster.SameCentre},
		{path("datacentre y", "room q", "leaf m"), muster.OtherCentre},
		{path("leaf m"), muster.SameSite},
		{Place{Rack: "r1"}, muster.SameRack}, // nothing is known of it
	} {
		if got := Apart(a, c.b); got != c.want {
			t.Errorf("%q: %s, not %s", c.b.Path, got, c.want)
		}
	}
	b, c := path("spine s", "leaf l"), path("spine s", "leaf m")
	b.Host, c.Host = "h", "h"
	if Apart(b, b) != muster.SameHost || Apart(b, c) != muster.SameSpine {
		t.Error(Apart(b, b), Apart(b, c))
	}
	// Many nodes: each distance has a round of its own.
	var places []Place
	for i := range 24 {
		places = append(places, path("spine s", fmt.Sprintf("leaf l%d", i/8), fmt.Sprintf("chassis c%d", i/4)))
	}
	for _, d := range []Distance{muster.SameChassis, muster.SameLeaf, muster.SameSpine} {
		round := atDistance(places, d, rand.New(rand.NewPCG(3, 4)))
		if len(round) == 0 {
			t.Errorf("%s: no pairs", d)
		}
		for _, p := range round {
			if got := Apart(places[p.A], places[p.B]); got != d {
				t.Errorf("%s: a pair at %s", d, got)
			}
		}
	}
	for _, d := range []Distance{SameHost, SameRack} {
		if round := atDistance(places, d, rand.New(rand.NewPCG(3, 4))); len(round) > 0 {
			t.Errorf("%s: %v", d, round)
		}
	}
}
