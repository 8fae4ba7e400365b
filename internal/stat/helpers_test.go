package stat

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// seeded is a source of chance that is the same in every run.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 4)) }

// normals draws n normal values.
func normals(r *rand.Rand, n int, mean, sd float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = mean + sd*r.NormFloat64()
	}
	return out
}

// atMost fails if hits among tries are more than a chance p explains, with one
// false alarm in a million.
func atMost(t *testing.T, what string, hits, tries int, p float64) {
	t.Helper()
	t.Logf("%s: %d of %d (%.5f), at most %.5f", what, hits, tries, float64(hits)/float64(tries), p)
	if BinomialTail(hits, tries, p) < 1e-6 {
		t.Errorf("%s: %d of %d is more than a chance of %v explains", what, hits, tries, p)
	}
}

// atLeast is the other side of atMost.
func atLeast(t *testing.T, what string, hits, tries int, p float64) {
	t.Helper()
	t.Logf("%s: %d of %d (%.5f), at least %.5f", what, hits, tries, float64(hits)/float64(tries), p)
	if BinomialCDF(hits, tries, p) < 1e-6 {
		t.Errorf("%s: %d of %d is less than a chance of %v explains", what, hits, tries, p)
	}
}

// sample draws values with many ties among them.
func sample(t *rapid.T, label string, least, most int) []float64 {
	value := rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.Map(rapid.IntRange(-3, 3), func(i int) float64 { return float64(i) }))
	return rapid.SliceOfN(value, least, most).Draw(t, label)
}

// doubled multiplies by a power of two, which loses no digit.
func doubled(x []float64, by float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = by * v
	}
	return out
}
