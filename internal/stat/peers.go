package stat

import (
	"fmt"
	"math"
)

// Peer is one of several values, seen from the others.
type Peer struct {
	// Centre is the median of the others.
	Centre float64
	// Scale is that of the others, or the known one.
	Scale Scale
	// Z is how many scales the value is from the centre, signed, with what is not
	// known of the centre counted in.
	Z float64
	// P is the chance of a Z at least as far from 0, on either side, for one that is
	// like the others. With many nodes and metrics it goes through [Holm].
	P float64
}

// Peers compares each value with the others, which it is not one of: a culprit
// hides neither itself nor another by widening the spread. Known is the scale of
// honest differences from history; where there is none it is the zero Scale, and
// the spread of the others is used, of as few degrees of freedom as they give. The
// floor is the smallest scale that is believed, as in [RobustZ].
//
// P supposes that honest values are normal, and Student's t distribution with the
// degrees of freedom of the scale. Two values are equally far from each other: a
// known scale means that one of them is wrong, not which. Without one it takes
// three values, or it is ErrFew; with four, a value must be far out to be seen
// ([SmallestShift] says how far).
func Peers(x []float64, known Scale, floor float64) ([]Peer, error) {
	if err := finite("values", x); err != nil {
		return nil, err
	}
	if !(floor >= 0) || !(known.Value >= 0) || !(known.DF >= 0) {
		return nil, fmt.Errorf("%w: floor %v, scale %v with %v degrees of freedom: none may be below 0", ErrRange, floor, known.Value, known.DF)
	}
	n, need := len(x), 3
	if known.DF > 0 {
		need = 2
	}
	if n < need {
		return nil, few("peers", n, need)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	sortBy(order, x)
	s := make([]float64, n)
	for i, k := range order {
		s[i] = x[k]
	}
	var spreads []float64
	if known.DF == 0 {
		spreads = leaveOneOut(s)
	}
	out := make([]Peer, n)
	for i, k := range order {
		p := Peer{Centre: without(s, i), Scale: known}
		if known.DF == 0 {
			p.Scale = Scale{spreads[i], spreadDF(n - 1), n - 1}
		}
		wider := math.Sqrt(1 + medianVariance(n-1))
		p.Z = RobustZ(x[k], p.Centre, p.Scale.Value*wider, floor*wider)
		p.P = min(1, 2*studentTail(math.Abs(p.Z), p.Scale.DF))
		out[k] = p
	}
	return out, nil
}

// without is the median of sorted values without one of them.
func without(s []float64, out int) float64 {
	at := func(i int) float64 {
		if i >= out {
			i++
		}
		return s[i]
	}
	n := len(s) - 1
	return mean2(at((n-1)/2), at(n/2))
}

// medianVariance is the variance of the median of n normal values of variance 1,
// 0 for n = 0, which means a centre that is known. pi/(2n) is it for many; the rest
// makes it exact for one, and right within 2 % for all odd n.
func medianVariance(n int) float64 {
	if n == 0 {
		return 0
	}
	return math.Pi / (2*float64(n) + math.Pi - 2)
}
