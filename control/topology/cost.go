package topology

import (
	"cmp"
	"slices"

	"github.com/muster-hpc/muster"
)

// assumed is the capacity of links of which none is known, in bits/s: hops count then.
const assumed = 1_000_000_000

// gigabit is what costs are for: each machine sends so many bits to each other.
const gigabit = 1_000_000_000

// capacity is that of the uplink of a stand.
func (s *Placed) capacity() int64 {
	if s.Uplink > 0 {
		return s.Uplink
	}
	return assumed
}

// Link is the capacity of the link of a machine to where it stands.
func (k *Tree) Link(id muster.MachineID) int64 {
	v := k.at[id]
	if l := k.Stands[v].Link; l > 0 {
		return l
	}
	f := k.facts[id]
	if f == nil {
		return assumed
	}
	most := int64(0)
	for i := range f.NICs {
		if f.NICs[i].Use == muster.UseMessage {
			most = max(most, f.NICs[i].Speed)
		}
	}
	return cmp.Or(most, assumed)
}

// sums counts of some machines how many are below each stand.
func (k *Tree) sums(chosen []muster.MachineID) []int {
	below := make([]int, len(k.Stands))
	for _, id := range chosen {
		below[k.at[id]]++
	}
	for v := len(below) - 1; v > 0; v-- {
		below[k.Stands[v].Parent] += below[v]
	}
	return below
}

// Counts are of some machines how many are below each stand, by its name.
func (k *Tree) Counts(machines []muster.MachineID) map[string]int {
	out := make(map[string]int, len(k.Stands))
	for v, n := range k.sums(machines) {
		if v > 0 {
			out[k.Stands[v].Name] = n
		}
	}
	for _, id := range machines {
		if k.at[id] == 0 {
			out[""]++
		}
	}
	return out
}

// Cost is that of communication between machines: the sum over all links, their own and
// those of stands, of s(k-s)/capacity, where s of the k machines are below the link. It is
// the time in seconds that links are busy, in sum, when each sends a gigabit to each other.
func (k *Tree) Cost(chosen []muster.MachineID) float64 {
	n, cost := len(chosen), 0.0
	for v, s := range k.sums(chosen) {
		if v > 0 && s > 0 && s < n {
			cost += pairs(s, n) * gigabit / float64(k.Stands[v].capacity())
		}
	}
	for _, id := range chosen {
		cost += pairs(1, n) * gigabit / float64(k.Link(id))
	}
	return cost
}

func pairs(s, n int) float64 { return float64(s) * float64(n-s) }

// Distance describes how far machines are from each other. least is the least cost of as
// many of those that could be had.
func (k *Tree) Distance(chosen []muster.MachineID, least float64) *muster.PlanDistance {
	n := len(chosen)
	d := &muster.PlanDistance{Cost: k.Cost(chosen), Least: least}
	below := k.sums(chosen)
	d.Switches, d.Mean = k.spans(chosen)
	for v, s := range below {
		p := &k.Stands[v]
		switch {
		case v == 0 || s == 0 || s == n:
		case p.Uplink == 0:
			d.Unknown++
		default:
			d.Uplinks = append(d.Uplinks, muster.UplinkShare{Stand: p.Name, Kind: p.Kind, Nodes: s, Capacity: p.Uplink, Share: p.Uplink / int64(s)})
		}
	}
	slices.SortStableFunc(d.Uplinks, func(a, b muster.UplinkShare) int {
		return cmp.Or(cmp.Compare(a.Share, b.Share), compareNatural(a.Stand, b.Stand))
	})
	d.Uplinks = d.Uplinks[:min(len(d.Uplinks), muster.MaxUplinks)]
	return d
}

// spans is how many switches are between two machines, at most and on average. Machines
// of one stand are alike, so that pairs of stands are looked at.
func (k *Tree) spans(chosen []muster.MachineID) (most int, mean float64) {
	count := map[int]int{}
	for _, id := range chosen {
		count[k.at[id]]++
	}
	stands := sortedKeys(count)
	sum := 0.0
	for i, a := range stands {
		for _, b := range stands[i:] {
			ways := float64(count[a]) * float64(count[b])
			if a == b {
				ways = float64(count[a]) * float64(count[a]-1) / 2
			}
			if ways == 0 {
				continue
			}
			n := k.between(a, b)
			most = max(most, n)
			sum += ways * float64(n)
		}
	}
	if all := float64(len(chosen)) * float64(len(chosen)-1) / 2; all > 0 {
		mean = sum / all
	}
	return most, mean
}
