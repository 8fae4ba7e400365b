package stat

import (
	"fmt"
	"math"
)

// Change is a place at which the level of a series changed.
type Change struct {
	// At is the index of the first value after the change.
	At int
	// Before and After are the medians from the change before to this one, and from
	// this one to the next.
	Before, After float64
	// P is the chance, or more, of ranks that differ as much at any place between
	// the change before and the next one if nothing had changed there.
	P float64
}

// leastStretch is the shortest length between changes for which the normal
// distribution of rank sums can be trusted.
const leastStretch = 5

// Changes finds the places at which the level of a series changed, by ranks: no
// outlier counts more than any other value, and logs change nothing. In a series
// without a change, whatever its distribution, it finds one with a chance of at
// most alpha, if its values are independent; where they drift or depend on each
// other, there are more. shortest, at least 5, is the fewest values between
// two changes and at both ends: a change is found only that many values after it
// came ([PredictionRegion] is for the newest value).
//
// Stretches of all lengths and places are searched by seeded binary segmentation
// (Kovács, Bühlmann, Li and Munk, 2023), so that a level that came back is found,
// too. In each stretch it is the place at which the ranks before and after differ
// most, with the chance of Miller and Siegmund (1982) or Bonferroni's, whichever is
// smaller; Lausen and Schumacher (1992). Half of alpha is for the whole series, the
// other half is shared by the lengths, and the narrowest stretch with a change is
// split first (Baranowski, Chen and Fryzlewicz, 2019). Then both sides are searched
// in the same way, each with alpha, and at the end each place is sought again
// between its neighbours, and dropped where it is not significant any more.
//
// ErrRange for alpha outside of (0, 1) and shortest below 5; ErrNotFinite. A
// series shorter than twice shortest has no changes.
func Changes(x []float64, alpha float64, shortest int) ([]Change, error) {
	if err := share("alpha", alpha); err != nil {
		return nil, err
	}
	if shortest < leastStretch {
		return nil, fmt.Errorf("%w: shortest is %d: it takes %d values on each side to see a change", ErrRange, shortest, leastStretch)
	}
	if err := finite("series", x); err != nil {
		return nil, err
	}
	s := &segments{x, alpha, shortest}
	return s.settle(s.search(0, len(x), nil)), nil
}

type segments struct {
	x        []float64
	alpha    float64
	shortest int
}

// search appends the places of changes from lo to hi, in order.
func (s *segments) search(lo, hi int, found []int) []int {
	at := s.narrowest(lo, hi)
	if at < 0 {
		return found
	}
	found = s.search(lo, at, found)
	return s.search(at, hi, append(found, at))
}

// narrowest is the most significant change in the narrowest layer of stretches
// that has one; -1 if there is none.
func (s *segments) narrowest(lo, hi int) int {
	n := hi - lo
	if n < 2*s.shortest {
		return -1
	}
	layers := 0
	length := func(layer int) int { return int(math.Ceil(float64(n) * math.Pow(2, -float64(layer)/2))) }
	for length(layers+1) >= 2*s.shortest && length(layers+1) < length(layers) {
		layers++
	}
	for layer := layers; layer >= 0; layer-- {
		l := length(layer)
		count := 2*int(math.Ceil(math.Pow(2, float64(layer)/2))) - 1
		limit := s.alpha / 2 / float64(max(layers, 1)*count)
		if layer == 0 {
			limit = s.alpha / 2
		}
		if layers == 0 {
			limit = s.alpha
		}
		at, least := -1, limit
		for i := range count {
			from := lo
			if count > 1 {
				from += (n - l) * i / (count - 1)
			}
			if k, p := rankChange(s.x[from:from+l], s.shortest); p <= least && (at < 0 || p < least) {
				at, least = from+k, p
			}
		}
		if at >= 0 {
			return at
		}
	}
	return -1
}

// settle moves each place to the best one between its neighbours until none
// moves, and drops the least significant as long as one is not significant.
func (s *segments) settle(at []int) []Change {
	for range 10 + 2*len(at) {
		worst, least, moved := -1, s.alpha, false
		for i := range at {
			lo, hi := s.between(at, i)
			k, p := rankChange(s.x[lo:hi], s.shortest)
			if p > least {
				worst, least = i, p
			}
			if k > 0 && lo+k != at[i] {
				at[i], moved = lo+k, true
			}
		}
		if worst >= 0 {
			at = append(at[:worst], at[worst+1:]...)
		} else if !moved {
			break
		}
	}
	var out []Change
	for i, a := range at {
		lo, hi := s.between(at, i)
		_, p := rankChange(s.x[lo:hi], s.shortest)
		out = append(out, Change{a, Median(s.x[lo:a]), Median(s.x[a:hi]), p})
	}
	return out
}

// between is the stretch around a place up to its neighbours.
func (s *segments) between(at []int, i int) (lo, hi int) {
	hi = len(s.x)
	if i > 0 {
		lo = at[i-1]
	}
	if i+1 < len(at) {
		hi = at[i+1]
	}
	return lo, hi
}

// rankChange is the place k at which the ranks of x[:k] and x[k:] differ most, and
// an upper bound of the chance that they differ as much anywhere without a
// change. 0 and 1 where there is no such place.
func rankChange(x []float64, shortest int) (k int, p float64) {
	n := len(x)
	if n < 2*shortest {
		return 0, 1
	}
	r, ties := ranks(x)
	size := float64(n)
	// The variance of the sum of i ranks is i (n-i) unit.
	unit := (size + 1 - ties/(size*(size-1))) / 12
	if !(unit > 1e-9) { // all equal
		return 0, 1
	}
	sum, best := 0.0, 0.0
	for i := 1; i <= n-shortest; i++ {
		sum += r[i-1] - (size+1)/2
		if i < shortest {
			continue
		}
		// Half a rank less, as sums move in steps.
		z := (math.Abs(sum) - 0.5) / math.Sqrt(float64(i)*float64(n-i)*unit)
		if z > best {
			k, best = i, z
		}
	}
	if k == 0 {
		return 0, 1
	}
	p = float64(n-2*shortest+1) * 2 * NormalCDF(-best)
	if best > 1 {
		e := float64(shortest) / size
		many := normalDensity(best) * (4/best + (best-1/best)*2*math.Log((1-e)/e))
		p = min(p, many)
	}
	return k, min(p, 1)
}
