package stat

import "math"

// Quantile is the value below which a share p of the values lies, of type 7 of
// Hyndman and Fan (1996), which is the default of R, NumPy and Julia: a straight
// line between the values at places 0, 1/(n-1), ..., 1. NaN if p is not in [0, 1],
// if there are no values, or if one of them is NaN.
//
// It is a figure to show. An interval for a quantile is [QuantileInterval].
func Quantile(x []float64, p float64) float64 {
	s, ok := ordered(x)
	if !ok || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	return quantile(s, p)
}

// quantile is Quantile of sorted values, at least one.
func quantile(s []float64, p float64) float64 {
	place := p * float64(len(s)-1)
	i := min(int(place), len(s)-1)
	f := place - float64(i)
	a := s[i]
	if f <= 0 || i+1 == len(s) || a == s[i+1] {
		return a
	}
	b := s[i+1]
	// Rounding must not lead out of the two.
	return min(max(a*(1-f)+b*f, a), b)
}
