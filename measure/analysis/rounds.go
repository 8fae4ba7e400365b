package analysis

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Pair is two nodes by their numbers in the list that was asked about, A < B.
type Pair struct{ A, B int }

func pairOf(a, b int) Pair { return Pair{min(a, b), max(a, b)} }

// allPairs is the largest number of nodes of which every pair is measured.
const allPairs = 16

// fewestMatchings are drawn whatever the number of nodes: each node needs several
// partners before it can be told from its partners.
const fewestMatchings = 6

// Rounds says which pairs are measured at the same time: in a round every node
// has one partner at most, so that no two pairs share a node. Up to 16 nodes meet
// each other once (the circle method: n-1 rounds, n if n is odd). Above that there
// is one round for each distance that occurs and max(6, ceil(log2 n)) matchings by
// chance, so that the number of rounds hardly grows with n. The order and who
// meets whom when are random: what else happens in a round is not always the same.
func Rounds(places []Place, r *rand.Rand) [][]Pair {
	n := len(places)
	var rounds [][]Pair
	if n <= allPairs {
		rounds = circle(r.Perm(n))
	} else {
		for _, d := range Distances() {
			if round := atDistance(places, d, r); len(round) > 0 {
				rounds = append(rounds, round)
			}
		}
		for range max(fewestMatchings, bits.Len(uint(n-1))) {
			rounds = append(rounds, matching(r.Perm(n)))
		}
	}
	r.Shuffle(len(rounds), func(i, j int) { rounds[i], rounds[j] = rounds[j], rounds[i] })
	for _, round := range rounds {
		slices.SortFunc(round, func(a, b Pair) int { return cmp.Or(a.A-b.A, a.B-b.B) })
	}
	return rounds
}

// circle has everybody meet everybody else once: the first stands still, the
// others walk around. With an odd number one sits out in each round.
func circle(nodes []int) [][]Pair {
	const nobody = -1
	nodes = slices.Clone(nodes)
	if len(nodes)%2 == 1 {
		nodes = append(nodes, nobody)
	}
	n := len(nodes)
	var rounds [][]Pair
	for range n - 1 {
		var round []Pair
		for i := range n / 2 {
			if a, b := nodes[i], nodes[n-1-i]; a != nobody && b != nobody {
				round = append(round, pairOf(a, b))
			}
		}
		rounds = append(rounds, round)
		last := nodes[n-1]
		copy(nodes[2:], nodes[1:n-1])
		nodes[1] = last
	}
	return rounds
}

// matching pairs neighbours in a list; the last of an odd number sits out.
func matching(nodes []int) []Pair {
	var round []Pair
	for i := 0; i+1 < len(nodes); i += 2 {
		round = append(round, pairOf(nodes[i], nodes[i+1]))
	}
	return round
}

// atDistance pairs nodes that are exactly so far apart, as many as it can easily.
func atDistance(places []Place, d Distance, r *rand.Rand) []Pair {
	// What two nodes at this distance have in common, and in what they differ.
	common := func(p Place) string { return "" }
	differ := func(i int) string { return places[i].Rack }
	switch d {
	case SameHost:
		common = func(p Place) string { return p.Host }
		differ = func(int) string { return "" }
	case SameRack:
		common = func(p Place) string { return p.Rack }
		differ = func(i int) string { return places[i].Host }
	case SameSite:
		if slices.ContainsFunc(places, func(p Place) bool { return p.Path != "" }) {
			differ = func(i int) string { return places[i].Path }
		}
	default:
		common = func(p Place) string { return p.within(d) }
		differ = func(i int) string { return places[i].Path }
	}
	groups := map[string][]int{}
	var names []string
	for _, i := range r.Perm(len(places)) {
		name := common(places[i])
		if name == "" && d != SameRack && d != SameSite && d != OtherCentre {
			continue // nobody knows which host it is, or there is no such stand around it
		}
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], i)
	}
	slices.Sort(names)
	var round []Pair
	for _, name := range names {
		// Sorted by what they must differ in, the first of one half and the first of
		// the other differ, unless one kind is more than half of all.
		group := groups[name]
		slices.SortStableFunc(group, func(a, b int) int { return cmp.Compare(differ(a), differ(b)) })
		half := (len(group) + 1) / 2
		for i := range len(group) - half {
			if a, b := group[i], group[i+half]; Apart(places[a], places[b]) == d {
				round = append(round, pairOf(a, b))
			}
		}
	}
	return round
}

// Suspects pairs each suspect with so many partners that are known to be good,
// another one in each round. Nobody has two suspects at the same time: with fewer
// good ones than suspects there are more rounds. Without good ones there are none.
func Suspects(suspects, good []int, partners int, r *rand.Rand) [][]Pair {
	if len(good) == 0 {
		return nil
	}
	partners = min(partners, len(good))
	good = slices.Clone(good)
	r.Shuffle(len(good), func(i, j int) { good[i], good[j] = good[j], good[i] })
	var rounds [][]Pair
	for first := 0; first < len(suspects); first += len(good) {
		some := suspects[first:min(first+len(good), len(suspects))]
		for shift := range partners {
			var round []Pair
			for i, s := range some {
				round = append(round, pairOf(s, good[(i+shift)%len(good)]))
			}
			rounds = append(rounds, round)
		}
	}
	return rounds
}
