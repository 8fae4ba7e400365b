package place

import (
	"cmp"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// ranked is a machine with what it is compared by, computed once.
type ranked struct {
	m     *muster.Machine
	waste waste
	hash  uint64
}

func (a ranked) compare(b ranked) int {
	if c := a.waste.compare(b.waste); c != 0 {
		return c
	}
	if c := cmp.Compare(a.hash, b.hash); c != 0 {
		return c
	}
	return strings.Compare(string(a.m.ID), string(b.m.ID))
}

// choose takes n of the machines.
func (p Planner) choose(how muster.Placement, s uint64, machines []*muster.Machine, n int) []*muster.Machine {
	all := make([]ranked, len(machines))
	for i, m := range machines {
		all[i] = ranked{m: m, waste: p.wasteOf(m), hash: hash(s, string(m.ID))}
	}
	slices.SortFunc(all, ranked.compare)
	sound := slices.IndexFunc(all, func(r ranked) bool { return r.waste.doubt > 0 })
	if sound < 0 {
		sound = len(all)
	}
	// Doubtful machines are for what the others do not suffice for.
	taken := p.placed(how, s, all[:sound], p.Near, min(n, sound))
	taken = append(taken, p.placed(how, s, all[sound:], slices.Concat(p.Near, machinesOf(taken)), n-len(taken))...)
	out := make([]*muster.Machine, len(taken))
	for i, r := range taken {
		out[i] = r.m
	}
	return out
}

func machinesOf(list []ranked) []muster.Machine {
	out := make([]muster.Machine, len(list))
	for i, r := range list {
		out[i] = *r.m
	}
	return out
}

// placed takes n of the machines, which are sorted best first; have are those that the
// cluster has already.
func (p Planner) placed(how muster.Placement, s uint64, all []ranked, have []muster.Machine, n int) []ranked {
	if p.Tree != nil && how != muster.PlaceAny {
		return p.packed(how, s, all, have, n)
	}
	switch how {
	case muster.PlacePack:
		return pack(racksOf(s, all), n)
	case muster.PlaceSpread:
		return spread(racksOf(s, all), n)
	}
	return slices.Clone(all[:n])
}

// rack holds its machines best first.
type rack struct {
	name     string
	hash     uint64
	machines []ranked
}

// racksOf sorts the machines into racks, fullest rack first.
func racksOf(s uint64, all []ranked) []*rack {
	byName := make(map[string]*rack)
	var list []*rack
	for _, r := range all {
		k := byName[r.m.Facts.Rack]
		if k == nil {
			k = &rack{name: r.m.Facts.Rack, hash: hash(s, "rack "+r.m.Facts.Rack)}
			byName[k.name] = k
			list = append(list, k)
		}
		k.machines = append(k.machines, r)
	}
	slices.SortFunc(list, func(a, b *rack) int {
		return cmp.Or(
			cmp.Compare(len(b.machines), len(a.machines)),
			cmp.Compare(a.hash, b.hash),
			strings.Compare(a.name, b.name),
		)
	})
	return list
}

// pack takes the fullest racks whole, and the rest from the smallest rack that
// holds it: as few racks as possible, and the large ones left whole if it can be.
func pack(racks []*rack, n int) []ranked {
	var out []ranked
	for n > 0 {
		best := 0
		for i := len(racks) - 1; i > 0; i-- {
			if len(racks[i].machines) >= n {
				best = firstOfSize(racks, i)
				break
			}
		}
		k := racks[best]
		racks = slices.Delete(racks, best, best+1)
		take := min(n, len(k.machines))
		out = append(out, k.machines[:take]...)
		n -= take
	}
	return out
}

// firstOfSize is the first rack with as many machines as rack i: the one that
// the hash prefers.
func firstOfSize(racks []*rack, i int) int {
	size := len(racks[i].machines)
	for i > 0 && len(racks[i-1].machines) == size {
		i--
	}
	return i
}

// spread takes one machine from each rack in turn, fullest rack first.
func spread(racks []*rack, n int) []ranked {
	out := make([]ranked, 0, n)
	for round := 0; len(out) < n; round++ {
		for _, k := range racks {
			if len(k.machines) <= round {
				break // the racks after it are no fuller
			}
			if out = append(out, k.machines[round]); len(out) == n {
				break
			}
		}
	}
	return out
}

// fewestRacks is how many racks n of the machines need at least.
func fewestRacks(machines []*muster.Machine, n int) int {
	counts := rackSizes(machines)
	sizes := make([]int, 0, len(counts))
	for _, c := range counts {
		sizes = append(sizes, c)
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	used := 0
	for _, c := range sizes {
		if n <= 0 {
			break
		}
		n -= c
		used++
	}
	return used
}

func rackCount(machines []*muster.Machine) int { return len(rackSizes(machines)) }

func rackSizes(machines []*muster.Machine) map[string]int {
	counts := make(map[string]int)
	for _, m := range machines {
		counts[m.Facts.Rack]++
	}
	return counts
}
