package stat

import "math"

// RobustZ says how many scales a value lies from a centre, signed. The floor is
// the smallest scale that is believed, in the unit of the values: a handful of
// equal values (a coarse clock, a cap) has a scale of zero and would condemn
// whatever differs in the last digit. Where scale and floor are both zero the
// result is 0 at the centre and infinite elsewhere. NaN for NaN and for a
// negative scale or floor.
func RobustZ(value, centre, scale, floor float64) float64 {
	d, s := value-centre, max(scale, floor)
	switch {
	case !(scale >= 0 && floor >= 0):
		return math.NaN()
	case d == 0:
		return 0
	case s == 0:
		return math.Inf(int(math.Copysign(1, d)))
	}
	return d / s
}

// RobustZs gives each value's [RobustZ] from the median of all, with their MAD
// as scale: the modified z-score of Iglewicz and Hoaglin (1993). A value is part
// of what it is compared with; [Peers] leaves it out, and should be preferred for
// a verdict. All NaN if a value is NaN.
func RobustZs(x []float64, floor float64) []float64 {
	out := make([]float64, len(x))
	m, s := Median(x), MAD(x)
	for i, v := range x {
		out[i] = RobustZ(v, m, s, floor)
	}
	return out
}
