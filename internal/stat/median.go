package stat

import (
	"math"
	"slices"
)

// Median is the middle value, or the mean of the two middle ones. NaN if there
// are none or one of them is NaN. Infinities are in order like other values.
func Median(x []float64) float64 {
	s, ok := ordered(x)
	if !ok {
		return math.NaN()
	}
	return middle(s)
}

// middle is the median of sorted values, at least one.
func middle(s []float64) float64 {
	n := len(s)
	return mean2(s[(n-1)/2], s[n/2])
}

// mean2 is the mean of two values, without overflow.
func mean2(a, b float64) float64 {
	if a == b {
		return a
	}
	if m := (a + b) / 2; !math.IsInf(m, 0) {
		return m
	}
	return a/2 + b/2
}

// ordered is a sorted copy; false if there is nothing to sort, or NaN.
func ordered(x []float64) ([]float64, bool) {
	if len(x) == 0 {
		return nil, false
	}
	s := slices.Clone(x)
	slices.Sort(s)
	return s, !math.IsNaN(s[0]) // NaN sorts first
}
