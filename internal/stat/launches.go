package stat

import (
	"fmt"
	"math"
)

// Launches is how often a program is to be launched, fixed before the first. The
// maximum is what is launched; the minimum is how many must have succeeded. There
// is no stopping in between because the interval looks narrow enough: intervals
// looked at again and again are too narrow more often than they say.
type Launches struct{ Min, Max int }

// Steadiness is what the spread over launches says of a figure.
type Steadiness int

// What a figure can be.
const (
	// Unknown: fewer launches than the minimum succeeded.
	Unknown Steadiness = iota
	// Stable: the interval is as narrow as was asked for.
	Stable
	// Unstable: all launches were made, and the interval is still wider. That is a
	// finding, not a reason to launch more.
	Unstable
)

func (s Steadiness) String() string {
	switch s {
	case Stable:
		return "stable"
	case Unstable:
		return "unstable"
	}
	return "unknown"
}

// Figure is what launches say together.
type Figure struct {
	N           int
	Median      float64
	Lowest      float64
	Highest     float64
	Interval    Interval // of the median; zero if Unknown
	HalfWidth   float64  // of the interval, relative to the median; NaN if Unknown
	Steadiness  Steadiness
	LevelAsked  float64
	WithinAsked float64
}

// Check refuses a plan that cannot give an interval of a median at a level: less
// than 6 launches at 95 %, or a maximum below the minimum.
func (l Launches) Check(level float64) error {
	if _, _, _, err := OrderRanks(l.Min, 0.5, level); err != nil {
		return fmt.Errorf("the minimum of launches: %w", err)
	}
	if l.Max < l.Min {
		return fmt.Errorf("%w: the maximum of launches, %d, is below the minimum, %d", ErrRange, l.Max, l.Min)
	}
	return nil
}

// Judge sums up the figures of the launches that succeeded, one for each: the
// median with its exact interval at a level, and whether the interval's half-width
// is at most within (such as 0.02), relative to the median. ErrRange for more values
// than the maximum, which nobody decided beforehand, and for a bad plan as
// [Launches.Check] says; ErrFew without any value; ErrNotFinite.
func (l Launches) Judge(x []float64, level, within float64) (Figure, error) {
	if err := l.Check(level); err != nil {
		return Figure{}, err
	}
	if err := finite("launches", x); err != nil {
		return Figure{}, err
	}
	if !(within >= 0) {
		return Figure{}, fmt.Errorf("%w: the half-width asked for is %v: it may not be below 0", ErrRange, within)
	}
	if len(x) > l.Max {
		return Figure{}, fmt.Errorf("%w: %d launches, but at most %d were decided", ErrRange, len(x), l.Max)
	}
	s, ok := ordered(x)
	if !ok {
		return Figure{}, few("the list of launches", 0, l.Min)
	}
	f := Figure{N: len(s), Median: middle(s), Lowest: s[0], Highest: s[len(s)-1],
		HalfWidth: math.NaN(), LevelAsked: level, WithinAsked: within}
	if len(s) < l.Min {
		return f, nil
	}
	v, err := MedianInterval(s, level)
	if err != nil {
		return Figure{}, err
	}
	f.Interval, f.HalfWidth, f.Steadiness = v, v.HalfWidth(f.Median), Unstable
	if f.HalfWidth <= within {
		f.Steadiness = Stable
	}
	return f, nil
}
