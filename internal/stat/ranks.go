package stat

import (
	"cmp"
	"slices"
)

// ranks gives every value its place among all, from 1; equal values share the
// mean of their places. ties is the sum of t^3-t over groups of t equal values,
// by which the variance of rank sums shrinks.
func ranks(x []float64) (r []float64, ties float64) {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	sortBy(order, x)
	r = make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			r[k] = float64(i+1+j) / 2
		}
		t := float64(j - i)
		ties += t * t * t
		ties -= t
		i = j
	}
	return r, ties
}

// sortBy sorts indices by their values; of equal values the first comes first.
func sortBy(order []int, x []float64) {
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
}
