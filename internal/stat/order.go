package stat

import (
	"fmt"
	"sort"
)

// OrderRanks says between which of n sorted values, counted from 1, the quantile
// p of what they were drawn from lies with a chance of at least level: p = 0.5
// is the median. Of the pairs of ranks whose two sides each miss with at most half
// of what the level leaves it is the narrowest, and coverage is what it reaches.
// It holds whatever the distribution; where values can be equal, it is safer
// still.
//
// Source: the number of values below the quantile is binomial with n and p; David
// and Nagaraja (2003), Order statistics, 7.1. ErrFew where even the outermost
// values do not reach the level: for a median at 95 % below 6 values.
func OrderRanks(n int, p, level float64) (low, high int, coverage float64, err error) {
	if err := share("quantile", p); err != nil {
		return 0, 0, 0, err
	}
	if err := share("level", level); err != nil {
		return 0, 0, 0, err
	}
	// A level that somebody typed as the exact coverage must be reached.
	miss := (1 - level) / 2 * (1 + 1e-12)
	if n < 1 || BinomialCDF(0, n, p) > miss || BinomialTail(n, n, p) > miss {
		return 0, 0, 0, fmt.Errorf("%w: %d values have no interval of the quantile %v at level %v: measure more", ErrFew, n, p, level)
	}
	// The quantile is below the value of rank r if at most r-1 values are below it.
	low = sort.Search(n, func(r int) bool { return BinomialCDF(r, n, p) > miss })
	low = max(low, 1)
	high = 1 + sort.Search(n-1, func(i int) bool { return BinomialTail(i+1, n, p) <= miss })
	return low, high, 1 - BinomialCDF(low-1, n, p) - BinomialTail(high, n, p), nil
}

// MedianInterval is the exact interval of the median of what the values were
// drawn from, by [OrderRanks]. The values must be independent: medians of
// launches, not samples inside of one. ErrFew below 6 values at 95 %.
func MedianInterval(x []float64, level float64) (Interval, error) {
	return QuantileInterval(x, 0.5, level)
}

// QuantileInterval is [MedianInterval] for any quantile p, between 0 and 1. It
// takes more values the nearer p is to the ends: 72 for 5 % at a level of 95 %.
func QuantileInterval(x []float64, p, level float64) (Interval, error) {
	if err := finite("values", x); err != nil {
		return Interval{}, err
	}
	low, high, coverage, err := OrderRanks(len(x), p, level)
	if err != nil {
		return Interval{}, err
	}
	s, _ := ordered(x)
	return Interval{s[low-1], s[high-1], coverage}, nil
}
