package stat

import "math"

// lowest finds the smallest number from lo to hi for which ok holds, to the last
// bit, by halving the numbers between them. ok is false up to some number and
// true from there on; where it is never true the result is hi.
func lowest(lo, hi float64, ok func(float64) bool) float64 {
	a, b := place(lo), place(hi)
	for a < b {
		m := a + (b-a)/2
		if ok(number(m)) {
			b = m
		} else {
			a = m + 1
		}
	}
	return number(a) + 0 // no negative zero
}

// place counts the numbers that there are in order, so that halving it takes at
// most 64 steps whatever the size of the numbers.
func place(v float64) uint64 {
	const sign = 1 << 63
	b := math.Float64bits(v)
	if b&sign != 0 {
		return ^b
	}
	return b | sign
}

func number(p uint64) float64 {
	const sign = 1 << 63
	if p&sign != 0 {
		return math.Float64frombits(p &^ sign)
	}
	return math.Float64frombits(^p)
}
