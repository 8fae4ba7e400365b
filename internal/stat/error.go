package stat

import (
	"errors"
	"fmt"
	"math"
)

var (
	// ErrFew says that there are too few values for what was asked, at any
	// precision: more have to be measured.
	ErrFew = errors.New("stat: too few values")
	// ErrNotFinite says that a value is NaN, or infinite, or beyond 1e150, which no
	// measurement is.
	ErrNotFinite = errors.New("stat: not a finite number")
	// ErrNotPositive says that a value is zero or below where its log is needed.
	ErrNotPositive = errors.New("stat: not above zero")
	// ErrRange says that a parameter, such as a level, is outside of what it may be.
	ErrRange = errors.New("stat: parameter out of range")
)

// largest is beyond any measurement, and small enough for squares not to overflow.
const largest = 1e150

// finite refuses NaN, infinities and what is as good as infinite, naming the place
// of the first.
func finite(what string, x []float64) error {
	for i, v := range x {
		if !(math.Abs(v) <= largest) {
			return fmt.Errorf("%w: %s[%d] is %v: leave out what was not measured", ErrNotFinite, what, i, v)
		}
	}
	return nil
}

// share refuses what is not strictly between 0 and 1.
func share(what string, v float64) error {
	if !(v > 0 && v < 1) {
		return fmt.Errorf("%w: %s is %v: it must be above 0 and below 1", ErrRange, what, v)
	}
	return nil
}

// few says how many values there are and how many it takes.
func few(what string, have, need int) error {
	return fmt.Errorf("%w: %s has %d, it takes %d", ErrFew, what, have, need)
}

// logs takes natural logarithms.
func logs(what string, x []float64) ([]float64, error) {
	if err := finite(what, x); err != nil {
		return nil, err
	}
	out := make([]float64, len(x))
	for i, v := range x {
		if v <= 0 {
			return nil, fmt.Errorf("%w: %s[%d] is %v, and its log is needed", ErrNotPositive, what, i, v)
		}
		out[i] = math.Log(v)
	}
	return out, nil
}

func errFloor(v float64) error {
	return fmt.Errorf("%w: the floor of the scale is %v: it may not be below 0", ErrRange, v)
}
