package stat

import "math"

// Interval holds the true value with a chance of at least Level, over many
// repetitions of all that led to it, if the values in it are independent of each
// other. Its ends are in the unit of the values.
type Interval struct {
	Low, High float64
	// Level is the chance that is reached, not the one that was asked for, where
	// only certain ones can be.
	Level float64
}

// HalfWidth is half of the interval's length relative to a centre, such as 0.02
// for "within 2 %". Infinite for a centre of zero, unless the interval is that
// point; NaN if something is.
func (v Interval) HalfWidth(centre float64) float64 {
	w := v.High/2 - v.Low/2
	if w == 0 {
		return 0
	}
	return w / math.Abs(centre)
}

// Holds says whether a value is inside, ends included.
func (v Interval) Holds(value float64) bool { return v.Low <= value && value <= v.High }
