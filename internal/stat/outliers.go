package stat

import (
	"fmt"
	"math"
)

// Outliers gives each value a chance, already adjusted for all of them, that is
// small where it does not belong to the others: those at or below a level are wrong
// anywhere with about that chance. It looks for most of them at most, taking away
// the furthest one by one, so that two do not hide each other. The floor is the
// smallest standard deviation that is believed, as in [RobustZ].
//
// It rests on the standard deviation of what is left, and sees much smaller
// defects among few values than [Peers] does: a node 6 deviations off among 8 in
// nine of ten cases against one of three, at 5 %. The price is that it is blind
// where there are more outliers than most. With a tenth of the values, 1 below
// twenty, false alarms are as rare as the level says, to a quarter of it; with a fifth
// they are up to half more often. Honest values are supposed to be normal.
//
// Source: Rosner (1983), Percentage points for a generalized ESD many-outlier
// procedure; with most = 1 it is the test of Grubbs (1950). ErrRange for most below 1
// or not below half of the values, ErrFew below 3 values, ErrNotFinite.
func Outliers(x []float64, most int, floor float64) ([]float64, error) {
	if err := finite("values", x); err != nil {
		return nil, err
	}
	switch {
	case len(x) < 3:
		return nil, few("values", len(x), 3)
	case most < 1 || 2*most >= len(x):
		return nil, fmt.Errorf("%w: at most %d outliers of %d values: 1 or more, and fewer than half", ErrRange, most, len(x))
	case !(floor >= 0):
		return nil, errFloor(floor)
	}
	left := make([]int, len(x))
	for i := range left {
		left[i] = i
	}
	sortBy(left, x) // the order of the values must not matter
	out := fill(len(x), 1)
	var gone []int
	for range most {
		mean, _ := moments(x, left)
		far := 0
		for k, i := range left {
			if math.Abs(x[i]-mean) > math.Abs(x[left[far]]-mean) {
				far = k
			}
		}
		i := left[far]
		n := float64(len(left))
		left = append(left[:far], left[far+1:]...)
		mean, sd := moments(x, left)
		wider := math.Sqrt(1 + 1/(n-1))
		z := RobustZ(x[i], mean, sd*wider, floor*wider)
		p := min(1, n*2*studentTail(math.Abs(z), n-2))
		// What convicts one convicts those further out.
		gone = append(gone, i)
		for _, j := range gone {
			out[j] = min(out[j], p)
		}
	}
	return out, nil
}

// moments are the mean and the standard deviation of some of the values.
func moments(x []float64, of []int) (mean, sd float64) {
	for _, i := range of {
		mean += x[i] / float64(len(of))
	}
	sum := 0.0
	for _, i := range of {
		sum += (x[i] - mean) * (x[i] - mean)
	}
	return mean, math.Sqrt(sum / float64(len(of)-1))
}
