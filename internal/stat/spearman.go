package stat

import (
	"fmt"
	"math"
)

// fewestRanked is how many pairs it takes for an interval of a rank correlation.
const fewestRanked = 5

// Correlation is a rank correlation with the interval that holds the true one.
type Correlation struct {
	Interval
	// Value is Spearman's: 1 where both rank alike, -1 where one turns the other around.
	Value float64
	N     int
}

// Spearman is the rank correlation of pairs x[i], y[i], with ties at the mean of their ranks.
// The interval is that of Bonett and Wright on Fisher's scale, with quantiles of Student's t in
// place of the normal ones: pairs are few here. Where all ranks agree it begins as if two
// neighbours had changed places, since Fisher's scale has no end. ErrFew for less than five
// pairs, and where one of both has one value only.
func Spearman(x, y []float64, level float64) (Correlation, error) {
	if len(x) != len(y) {
		return Correlation{}, fmt.Errorf("%w: %d values and %d do not make pairs", ErrRange, len(x), len(y))
	}
	if err := share("level", level); err != nil {
		return Correlation{}, err
	}
	for _, v := range [][]float64{x, y} {
		if err := finite("pairs", v); err != nil {
			return Correlation{}, err
		}
	}
	n := len(x)
	if n < fewestRanked {
		return Correlation{}, few("a rank correlation", n, fewestRanked)
	}
	a, _ := ranks(x)
	b, _ := ranks(y)
	mean := float64(n+1) / 2
	var ab, aa, bb float64
	for i := range a {
		ab += (a[i] - mean) * (b[i] - mean)
		aa += (a[i] - mean) * (a[i] - mean)
		bb += (b[i] - mean) * (b[i] - mean)
	}
	if aa == 0 || bb == 0 {
		return Correlation{}, fmt.Errorf("%w: all values of one side are the same", ErrFew)
	}
	r := max(-1, min(1, ab/math.Sqrt(aa*bb)))
	f := float64(n)
	centre := max(-1+12/(f*(f*f-1)), min(1-12/(f*(f*f-1)), r))
	half := StudentQuantile((1+level)/2, f-2) * math.Sqrt((1+centre*centre/2)/(f-3))
	c := Correlation{Value: r, N: n, Interval: Interval{Low: math.Tanh(math.Atanh(centre) - half), High: math.Tanh(math.Atanh(centre) + half), Level: level}}
	switch r {
	case 1:
		c.High = 1
	case -1:
		c.Low = -1
	}
	return c, nil
}
