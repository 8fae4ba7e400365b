package stat

import "math"

// StudentCDF is the chance that a value of Student's t distribution with df
// degrees of freedom (any number above 0; +Inf is the normal distribution) is at
// most t. Small lower tails keep all their digits. NaN for NaN and for df <= 0.
func StudentCDF(t, df float64) float64 {
	if t <= 0 {
		return studentTail(-t, df)
	}
	return 1 - studentTail(t, df)
}

// studentTail is the chance of a value above t, for t >= 0.
func studentTail(t, df float64) float64 {
	switch {
	case math.IsNaN(t) || !(df > 0):
		return math.NaN()
	case math.IsInf(t, 1):
		return 0
	case df > 1e12: // the same to the last digit
		return NormalCDF(-t)
	}
	// x = df/(df+tt) and y = tt/(df+tt), without overflow.
	r := t / math.Sqrt(df) * (t / math.Sqrt(df))
	x, y := 1/(1+r), 1.0
	if !math.IsInf(r, 1) {
		y = r / (1 + r)
	}
	p, _ := betaInc(df/2, 0.5, x, y)
	return p / 2
}

// StudentQuantile is the t with StudentCDF(t, df) = p: -Inf at 0, +Inf at 1, NaN
// outside of [0, 1] and for df <= 0.
func StudentQuantile(p, df float64) float64 {
	switch {
	case !(p >= 0 && p <= 1) || !(df > 0):
		return math.NaN()
	case p == 0.5:
		return 0
	case p == 0:
		return math.Inf(-1)
	case p > 0.5:
		return -StudentQuantile(1-p, df)
	}
	t := lowest(0, math.MaxFloat64, func(t float64) bool { return studentTail(t, df) <= p })
	return -t
}
