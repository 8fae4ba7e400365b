package stat

import "math"

// GeoMean is the geometric mean, the n-th root of the product, through logs so
// that nothing overflows: the mean of ratios, and of tests in different units when
// each is a ratio to a reference. Zero if a value is zero. NaN if there are no
// values, or one is negative or NaN.
//
// Source: Fleming and Wallace (1986), How not to lie with statistics.
func GeoMean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	var sum, lost float64 // compensated: a sum of many logs keeps its last digits
	least, most := math.Inf(1), 0.0
	zero, inf := false, false
	for _, v := range x {
		switch {
		case !(v >= 0):
			return math.NaN()
		case v == 0:
			zero = true
		case math.IsInf(v, 1):
			inf = true
		default:
			least, most = min(least, v), max(most, v)
			y := math.Log(v) - lost
			t := sum + y
			lost, sum = (t-sum)-y, t
		}
	}
	switch {
	case zero && inf:
		return math.NaN()
	case zero:
		return 0
	case inf:
		return math.Inf(1)
	}
	// Rounding must not lead out of the values.
	return min(max(math.Exp(sum/float64(len(x))), least), most)
}
