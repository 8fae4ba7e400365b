package stat

import "math"

// RankTest is the result of [MannWhitney].
type RankTest struct {
	// U counts the pairs in which the first sample's value is above the second's;
	// equal ones count half. Divided by the number of pairs it is the chance that
	// the first is above.
	U float64
	// P is the chance of a U at least as far from the middle, on either side, if
	// both samples come from one distribution.
	P float64
	// Exact says that P was counted, not taken from the normal distribution.
	Exact bool
}

// MannWhitney asks whether two samples come from one distribution, by ranks only:
// no outlier, log or unit changes the answer. P is counted exactly for samples
// without ties of up to 2500 pairs, and for samples with ties of up to 40 values
// together (given these ties); otherwise it is the normal approximation with the
// corrections for ties and for continuity. If all values are equal P is 1.
//
// Source: Mann and Whitney (1947); for ties Lehmann (1975), Nonparametrics, 1.4.
// ErrFew if a sample is empty. 3 against 3 values never come out below 5 %, 4 against
// 4 can.
func MannWhitney(a, b []float64) (RankTest, error) {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return RankTest{}, few("a sample", 0, 1)
	}
	if err := finite("first sample", a); err != nil {
		return RankTest{}, err
	}
	if err := finite("second sample", b); err != nil {
		return RankTest{}, err
	}
	r, ties := ranks(append(append(make([]float64, 0, n+m), a...), b...))
	sum := 0.0
	for _, v := range r[:n] {
		sum += v
	}
	least := float64(n) * float64(n+1) / 2
	t := RankTest{U: sum - least}
	switch {
	case ties == 0 && n*m <= exactProduct:
		t.P, t.Exact = twoSided(wilcoxon(n, m), int(math.Round(t.U))), true
	case n+m <= exactTied:
		doubled, all := make([]int, n+m), 0
		for i, v := range r {
			doubled[i] = int(math.Round(2 * v))
			all += doubled[i]
		}
		k, at := n, int(math.Round(2*sum))
		if m < n { // fewer ways, and the other side of the same
			k, at = m, all-at
		}
		t.P, t.Exact = twoSided(tied(doubled, k), at), true
	default:
		mean, sd := uNormal(n, m, ties)
		if !(sd > 0) { // all equal
			t.P = 1
			break
		}
		z := max(math.Abs(t.U-mean)-0.5, 0) / sd
		t.P = 2 * NormalCDF(-z)
	}
	return t, nil
}

// twoSided is twice the smaller tail of a distribution over 0, 1, ... at a value.
func twoSided(p []float64, at int) float64 {
	var low, high float64
	for i, v := range p {
		if i <= at {
			low += v
		}
		if i >= at {
			high += v
		}
	}
	return min(1, 2*min(low, high))
}
