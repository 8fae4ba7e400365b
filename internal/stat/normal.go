package stat

import "math"

// NormalCDF is the chance that a standard normal value is at most z. Small tails
// keep all their digits. NaN for NaN.
func NormalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// NormalQuantile is the z with NormalCDF(z) = p: -Inf at 0, +Inf at 1, NaN
// outside of [0, 1]. For a chance so near to 1 that it has no digits left, ask for
// the quantile of what is missing and change its sign.
func NormalQuantile(p float64) float64 {
	switch {
	case !(p >= 0 && p <= 1):
		return math.NaN()
	case p == 0:
		return math.Inf(-1)
	case p == 0.5:
		return 0
	case p > 0.5:
		return -NormalQuantile(1 - p)
	}
	// Newton on the logarithm of the distribution. It is concave, and the start is
	// left of the solution because NormalCDF(-t) <= exp(-t*t/2)/2, so the steps only
	// go right and cannot miss.
	z, want := -math.Sqrt(-2*math.Log(p)), math.Log(p)
	for range 64 {
		c := NormalCDF(z)
		if c == 0 { // below the smallest number that is
			break
		}
		step := (want - math.Log(c)) * c / normalDensity(z)
		z += step
		if math.Abs(step) <= 1e-16*math.Abs(z) {
			break
		}
	}
	return z
}

func normalDensity(z float64) float64 { return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) }
