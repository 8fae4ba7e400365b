package muster

import (
	"cmp"
	"slices"
)

// AtOnce is the largest sum of what machines weigh that can be in use at once: machines that
// share a part exclude each other, and those of different sets are made of the same cores. Where
// no machine has parts it is the plain sum. It tries the machines of each set, with what fits beside
// them: where sets lie across each other in uncommon ways it may be a little less than there is.
func AtOnce(machines []*Facts, weigh func(*Facts) int64) int64 {
	sum := int64(0)
	var shared []*Facts
	for _, f := range machines {
		if len(f.Parts) == 0 {
			sum += weigh(f)
		} else {
			shared = append(shared, f)
		}
	}
	for _, group := range sharing(shared) {
		sets := map[string]bool{"": true} // and whatever weighs most, of any
		for _, f := range group {
			sets[f.Set] = true
		}
		best := int64(0)
		for set := range sets {
			best = max(best, fitting(group, set, weigh))
		}
		sum += best
	}
	return sum
}

// fitting is the sum of machines that can be in use at once, those of a set first, then the
// heaviest.
func fitting(machines []*Facts, set string, weigh func(*Facts) int64) (sum int64) {
	order := slices.Clone(machines)
	slices.SortStableFunc(order, func(a, b *Facts) int {
		if first := a.Set == set; first != (b.Set == set) {
			if first {
				return -1
			}
			return 1
		}
		return cmp.Compare(weigh(b), weigh(a))
	})
	taken := map[string]bool{}
	for _, f := range order {
		if slices.ContainsFunc(f.Parts, func(p string) bool { return taken[p] }) {
			continue
		}
		sum += weigh(f)
		for _, p := range f.Parts {
			taken[p] = true
		}
	}
	return sum
}

// sharing divides machines into groups: what is in different ones has no part in common, directly
// or by others.
func sharing(machines []*Facts) [][]*Facts {
	group := make([]int, len(machines)) // each begins a group, and joins that of a lower one
	var find func(i int) int
	find = func(i int) int {
		for group[i] != i {
			group[i] = group[group[i]]
			i = group[i]
		}
		return i
	}
	first := map[string]int{}
	for i, f := range machines {
		group[i] = i
		for _, p := range f.Parts {
			j, known := first[p]
			if !known {
				first[p] = i
				continue
			}
			a, b := find(i), find(j)
			group[max(a, b)] = min(a, b)
		}
	}
	at := map[int]int{}
	var out [][]*Facts
	for i, f := range machines {
		root := find(i)
		k, known := at[root]
		if !known {
			k = len(out)
			at[root] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], f)
	}
	return out
}
