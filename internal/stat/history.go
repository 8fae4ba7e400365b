package stat

import (
	"fmt"
	"math"
)

// Against compares a value with the centre of a history and the scale of its
// honest differences, as [Peers] does with other values. The centre is taken for
// the median of the s.N values that the scale was found from. ErrNotFinite, and
// ErrRange for a scale without degrees of freedom or a negative one or floor.
func Against(value, centre float64, s Scale, floor float64) (Peer, error) {
	if err := finite("value and centre", []float64{value, centre}); err != nil {
		return Peer{}, err
	}
	if !(floor >= 0) || !(s.Value >= 0) || !(s.DF > 0) || s.N < 0 {
		return Peer{}, fmt.Errorf("%w: floor %v, scale %v with %v degrees of freedom of %d values", ErrRange, floor, s.Value, s.DF, s.N)
	}
	wider := math.Sqrt(1 + medianVariance(s.N))
	p := Peer{Centre: centre, Scale: s, Z: RobustZ(value, centre, s.Value*wider, floor*wider)}
	p.P = min(1, 2*studentTail(math.Abs(p.Z), s.DF))
	return p, nil
}
