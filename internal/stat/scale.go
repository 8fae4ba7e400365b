package stat

import (
	"cmp"
	"slices"
)

// Scale is a standard deviation that normal spread has, and how well it is known.
type Scale struct {
	// Value is in the unit of the values; on logs it is about a share: 0.02 is 2 %.
	Value float64
	// DF is the number of degrees of freedom of Student's t distribution that is
	// to be used with it. 0 if there is no scale.
	DF float64
	// N is how many values it was found from.
	N int
}

// ScaleOf is the [Spread] of values that were drawn from one distribution, with
// its degrees of freedom: n/2, rounded down, as only the closest half of the values
// can be trusted. ErrFew below 2 values; ErrNotFinite.
func ScaleOf(x []float64) (Scale, error) {
	if err := finite("values", x); err != nil {
		return Scale{}, err
	}
	s, ok := ordered(x)
	if !ok || len(s) < 2 {
		return Scale{}, few("values", len(x), 2)
	}
	return Scale{spread(s), spreadDF(len(s)), len(s)}, nil
}

// Pooled is the scale inside of groups that may each have another level, such as
// the runs of each node of a class: the median of the distances between any two
// values of one group, in which a group weighs as many values as it has less one.
// Up to 29 % of the values may be anything, and so may a few whole groups: a
// node that is erratic widens nobody's limits. Groups of one value add nothing.
//
// Source: Bickel and Lehmann (1979), spread by absolute differences; Rousseeuw and
// Croux (1993). ErrFew if no group has two values; ErrNotFinite.
func Pooled(groups [][]float64) (Scale, error) {
	var sorted [][]float64
	total, far, n, df := 0, 0.0, 0, 0.0
	for _, g := range groups {
		if err := finite("a group", g); err != nil {
			return Scale{}, err
		}
		if len(g) < 2 {
			continue
		}
		s, _ := ordered(g)
		sorted = append(sorted, s)
		total += len(s) - 1
		n += len(s)
		df += pooledDF(len(s))
		far = max(far, s[len(s)-1]-s[0])
	}
	if len(sorted) == 0 {
		return Scale{}, few("the largest group", 1, 2)
	}
	// Each pair of a group of m values weighs 2/m, so that all of them weigh m-1.
	within := lowest(0, far, func(v float64) bool {
		sum := 0.0
		for _, s := range sorted {
			sum += 2 * float64(gapsWithin(s, v)) / float64(len(s))
		}
		return sum >= float64(total)/2*(1-1e-12)
	})
	return Scale{pooledFactor * within, max(1, df), n}, nil
}

// pooledFactor is 1/(sqrt(2) z(3/4)).
const pooledFactor = 1.048358082892862

// pooledDF is what a group of n values adds to the degrees of freedom of the
// pooled scale. Of the n-1 of its standard deviation about half is left where
// differences are many, and less where each value is in one or two of them: found
// by simulation, so that limits from t are missed as often as they say or less.
func pooledDF(n int) float64 {
	switch n {
	case 2:
		return 1. / 3
	case 3:
		return 0.9
	}
	return float64(n-1) / 2
}

// leaveOneOut is the spread of sorted values without each of them in turn, three
// at least. Every k-th distance of fewer values lies between the k-th and the
// (k+n-1)-th of all, so only those in between have to be looked at.
func leaveOneOut(s []float64) []float64 {
	n := len(s)
	k := spreadRank(n - 1)
	low, high := gap(s, k), gap(s, k+n-1)
	type distance struct {
		v    float64
		i, j int
	}
	var near []distance
	atMost := make([]int, n) // pairs with this value that are at most low apart
	for i := range s {
		for j := i + 1; j < n && s[j]-s[i] < high; j++ {
			if d := s[j] - s[i]; d > low {
				near = append(near, distance{d, i, j})
			} else {
				atMost[i]++
				atMost[j]++
			}
		}
	}
	if low == high { // counted above only up to below high
		return fill(n, spreadScale(n-1)*low)
	}
	slices.SortFunc(near, func(a, b distance) int { return cmp.Compare(a.v, b.v) })
	all := gapsWithin(s, low)
	out := make([]float64, n)
	for e := range s {
		need := k - (all - atMost[e])
		v := low
		if need > 0 {
			v = high
			for _, d := range near {
				if d.i == e || d.j == e {
					continue
				}
				if need--; need == 0 {
					v = d.v
					break
				}
			}
		}
		out[e] = spreadScale(n-1) * v
	}
	return out
}

func fill(n int, v float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}
