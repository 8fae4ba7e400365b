package stat

import (
	"fmt"
	"math"
)

// BinomialCDF is the chance of at most k hits in n tries of which each hits with
// chance p. Small results keep their digits. NaN for n < 0 and p outside of
// [0, 1].
func BinomialCDF(k, n int, p float64) float64 {
	at, _ := binomialTails(k, n, p)
	return at
}

// BinomialTail is the chance of k or more hits in n tries, with its digits where
// it is small. NaN as for [BinomialCDF].
func BinomialTail(k, n int, p float64) float64 {
	_, above := binomialTails(k-1, n, p)
	return above
}

// binomialTails are the chances of at most k hits and of more.
func binomialTails(k, n int, p float64) (at, above float64) {
	switch {
	case n < 0 || !(p >= 0 && p <= 1):
		return math.NaN(), math.NaN()
	case k < 0:
		return 0, 1
	case k >= n:
		return 1, 0
	}
	above, at = betaInc(float64(k)+1, float64(n)-float64(k), p, 1-p)
	return at, above
}

// ClopperPearson is the exact interval of a chance of which k hits in n tries
// were seen: each side misses with at most half of what the level leaves. Low is 0
// where nothing was hit, and High is 1 where everything was. Level is what was
// asked for; what is reached depends on the unknown chance and is never less.
//
// Source: Clopper and Pearson (1934), through quantiles of the beta distribution.
// ErrRange for k outside of 0..n and a level outside of (0, 1); with n = 0 the
// interval is everything.
func ClopperPearson(k, n int, level float64) (Interval, error) {
	if err := share("level", level); err != nil {
		return Interval{}, err
	}
	if n < 0 || k < 0 || k > n {
		return Interval{}, fmt.Errorf("%w: %d hits in %d tries: hits are 0 to the number of tries", ErrRange, k, n)
	}
	miss := (1 - level) / 2
	v := Interval{0, 1, level}
	if k > 0 {
		v.Low = lowest(0, 1, func(p float64) bool { return BinomialTail(k, n, p) >= miss })
	}
	if k < n {
		v.High = lowest(0, 1, func(p float64) bool { return BinomialCDF(k, n, p) <= miss })
	}
	return v, nil
}
