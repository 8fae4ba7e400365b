package stat

import (
	"math"
	"slices"
)

// madFactor is 1/z(3/4): it makes the MAD of normal values their standard
// deviation.
const madFactor = 1.482602218505602

// MAD is the median distance from the median, times 1.4826, so that it is the
// standard deviation where values are normal and there are many. Half of the
// values may be anything. With few values it is too small on average (by a third
// at three, a tenth at eight); [Spread] is not. NaN as for [Median].
//
// Source: Hampel (1974), The influence curve and its role in robust estimation.
func MAD(x []float64) float64 {
	s, ok := ordered(x)
	if !ok {
		return math.NaN()
	}
	m := middle(s)
	for i, v := range s {
		s[i] = math.Abs(v - m)
	}
	slices.Sort(s)
	if math.IsNaN(s[0]) {
		return math.NaN()
	}
	return madFactor * middle(s)
}
