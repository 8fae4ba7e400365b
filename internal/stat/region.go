package stat

import "math"

// Region is where the next value of a series is expected.
type Region struct {
	Interval
	Centre float64
	Scale  Scale
}

// PredictionRegion is where the next value lies with the chance level (such as
// 0.9999) if nothing changed: the median of the history, plus and minus Student's
// t for the level times its [Spread], widened for what is not known of the median.
// The floor is the smallest scale that is believed, as in [RobustZ].
//
// It supposes that the history is without drift, that its values are independent,
// and that honest ones are normal (times and rates are so on logs, rather); up to
// half of them may be outliers. At levels like 0.9999 a short history gives a wide
// region: of 8 values it is 17 scales to either side, of 20 6.4, of 100 4.3. ErrFew below 3
// values, ErrRange, ErrNotFinite.
func PredictionRegion(history []float64, level, floor float64) (Region, error) {
	if err := share("level", level); err != nil {
		return Region{}, err
	}
	if len(history) < 3 {
		return Region{}, few("history", len(history), 3)
	}
	s, err := ScaleOf(history)
	if err != nil {
		return Region{}, err
	}
	if !(floor >= 0) {
		return Region{}, errFloor(floor)
	}
	s.Value = max(s.Value, floor)
	c := Median(history)
	half := -StudentQuantile((1-level)/2, s.DF) * s.Value * math.Sqrt(1+medianVariance(s.N))
	return Region{Interval{c - half, c + half, level}, c, s}, nil
}
