package stat

import (
	"fmt"
	"math"
)

// SmallestShift is the smallest true difference between the medians of n and of m
// normal values that a two-sided test at a level sees with the chance power, in the
// unit of the scale. n = 1 and m = the number of peers is a node among its peers;
// n = 1 and m = the length of a history is the next value; m = 0 is a comparison
// with a number that is known. Where many tests are made at once, the level is what
// is left to each: 1 - 0.05/tests, for example.
//
// Source: the noncentral t distribution, integrated numerically; the variance of
// a median is near pi/(2n). ErrRange for n < 1, m < 0, level or power outside of
// (0, 1), a power not above what the level lets through by chance, and a scale with
// less than 1 degree of freedom.
func SmallestShift(s Scale, n, m int, level, power float64) (float64, error) {
	if err := share("level", level); err != nil {
		return 0, err
	}
	if err := share("power", power); err != nil {
		return 0, err
	}
	switch {
	case n < 1 || m < 0:
		return 0, fmt.Errorf("%w: %d against %d values: at least 1 against 0", ErrRange, n, m)
	case !(s.DF >= 1) || !(s.Value >= 0) || math.IsInf(s.Value, 0):
		return 0, fmt.Errorf("%w: a scale of %v with %v degrees of freedom: it takes 1 at least", ErrRange, s.Value, s.DF)
	case power <= 1-level:
		return 0, fmt.Errorf("%w: power is %v: chance alone gives %v", ErrRange, power, 1-level)
	}
	t := -StudentQuantile((1-level)/2, s.DF)
	shift := crossing(func(d float64) float64 { return studentPower(t, d, s.DF) - power })
	return shift * s.Value * math.Sqrt(medianVariance(n)+medianVariance(m)), nil
}

// crossing is where a function that grows from below 0 at 0 crosses it: by false
// position, of which an end that stays counts for half (Illinois). An evaluation is an
// integral here, and this takes a dozen where halving takes a hundred.
func crossing(f func(float64) float64) float64 {
	low, high := 0.0, 1.0
	below, above := f(low), f(high)
	for above < 0 && high < math.MaxFloat64/2 {
		low, below = high, above
		high *= 2
		above = f(high)
	}
	for side, i := 0, 0; i < 200 && high-low > 1e-12*high; i++ {
		mid := high - above*(high-low)/(above-below)
		if !(mid > low && mid < high) {
			mid = low + (high-low)/2
		}
		switch v := f(mid); {
		case v == 0:
			return mid
		case v > 0:
			high, above = mid, v
			if side == 1 {
				below /= 2
			}
			side = 1
		default:
			low, below = mid, v
			if side == -1 {
				above /= 2
			}
			side = -1
		}
	}
	return high
}

// studentPower is the chance that |Z + d| > t S, where Z is standard normal and S
// is the root of chi-squared over its degrees of freedom.
func studentPower(t, d, df float64) float64 {
	beyond := func(s float64) float64 { return NormalCDF(d-t*s) + NormalCDF(-d-t*s) }
	if df > 1e10 {
		return beyond(1)
	}
	h := df / 2
	front := math.Log(2) + math.Log(h)/2 - math.Log(2*math.Pi)/2 - stirlingRest(h)
	density := func(s float64) float64 {
		if s == 0 {
			if df > 1 {
				return 0
			}
			return math.Exp(front + h)
		}
		return math.Exp(front + h*(1-s*s+2*math.Log(s)) - math.Log(s))
	}
	// Beyond these there is less than 1e-16 of S. Where Z + d meets t S the chance
	// goes from 1 to 0 within a few 1/t, so there it is looked at closely.
	wide := 12 / math.Sqrt(df)
	low, high := max(0, 1-wide), 1+wide
	bounded := func(s float64) float64 { return min(max(s, low), high) }
	from, to := bounded((d-9)/t), bounded((d+9)/t)
	f := func(s float64) float64 { return density(s) * beyond(s) }
	return simpson(f, low, from) + simpson(f, from, to) + simpson(f, to, high)
}

// simpson integrates by Simpson's rule.
func simpson(f func(float64) float64, a, b float64) float64 {
	if !(b > a) {
		return 0
	}
	const n = 128
	step := (b - a) / n
	sum := f(a) + f(b)
	for i := 1; i < n; i++ {
		sum += float64(2+2*(i%2)) * f(a+step*float64(i))
	}
	return sum * step / 3
}
