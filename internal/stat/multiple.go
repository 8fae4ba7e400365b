package stat

import (
	"fmt"
	"math"
	"slices"
)

// Holm adjusts the p-values of many tests made at once so that calling all those
// at or below a level significant is wrong anywhere with at most that chance,
// however the tests depend on each other: for verdicts that condemn.
//
// NaN stands for a test that could not be made: it stays NaN and does not count.
// ErrRange for any other value outside of [0, 1].
//
// Source: Holm (1979), A simple sequentially rejective multiple test procedure.
func Holm(p []float64) ([]float64, error) {
	return adjust(p, func(sorted []float64) {
		worst := 0.0
		for i, v := range sorted {
			worst = max(worst, v*float64(len(sorted)-i))
			sorted[i] = min(worst, 1)
		}
	})
}

// BenjaminiHochberg adjusts p-values so that of those called significant at a level
// at most that share is wrong on average, if the tests are independent or depend on
// each other positively, as tests against common peers do: for choosing whom to
// look at again. NaN and errors as for [Holm].
//
// Source: Benjamini and Hochberg (1995); Benjamini and Yekutieli (2001), 1.2 for
// the dependence.
func BenjaminiHochberg(p []float64) ([]float64, error) {
	return adjust(p, func(sorted []float64) { stepUp(sorted, 1) })
}

// BenjaminiYekutieli is [BenjaminiHochberg] for tests that depend on each other in
// any way, at the price of a factor 1 + 1/2 + ... + 1/n.
//
// Source: Benjamini and Yekutieli (2001), theorem 1.3.
func BenjaminiYekutieli(p []float64) ([]float64, error) {
	return adjust(p, func(sorted []float64) {
		c := 0.0
		for i := range sorted {
			c += 1 / float64(i+1)
		}
		stepUp(sorted, c)
	})
}

func stepUp(sorted []float64, factor float64) {
	best := 1.0
	for i := len(sorted) - 1; i >= 0; i-- {
		// In this order rounding makes no p-value less than it was.
		best = min(best, sorted[i]*(factor*float64(len(sorted))/float64(i+1)))
		sorted[i] = best
	}
}

// adjust applies f to the sorted p-values and puts them back in their places.
func adjust(p []float64, f func(sorted []float64)) ([]float64, error) {
	var order []int
	for i, v := range p {
		switch {
		case math.IsNaN(v):
			continue
		case v < 0 || v > 1:
			return nil, fmt.Errorf("%w: p[%d] is %v: a chance is 0 to 1, or NaN for a test that was not made", ErrRange, i, v)
		}
		order = append(order, i)
	}
	sortBy(order, p)
	sorted := make([]float64, len(order))
	for i, k := range order {
		sorted[i] = p[k]
	}
	f(sorted)
	out := slices.Clone(p)
	for i, k := range order {
		out[k] = sorted[i]
	}
	return out, nil
}
