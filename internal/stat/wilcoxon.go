package stat

import "math"

const (
	// exactProduct is the product of two sample sizes up to which the distribution
	// of U is counted: 50 against 50 takes milliseconds, and beyond it the normal
	// distribution is as good.
	exactProduct = 2500
	// exactTied is how many values both samples may have together for the
	// distribution with ties to be counted.
	exactTied = 40
)

// wilcoxon is the distribution of Mann and Whitney's U of samples of n and m
// values without ties when nothing differs: the chance of each U from 0 to n*m.
//
// Source: the recurrence of Mann and Whitney (1947): the largest of all values is
// of the first sample, and adds m to U, with chance n/(n+m). On chances instead of
// counts it adds positive numbers only, and cannot overflow.
func wilcoxon(n, m int) []float64 {
	if m > n { // the shorter side is kept in memory; U is symmetric
		n, m = m, n
	}
	last := make([][]float64, m+1) // by size of the second sample
	for j := range last {
		last[j] = []float64{1}
	}
	for i := 1; i <= n; i++ {
		row := make([][]float64, m+1)
		row[0] = []float64{1}
		for j := 1; j <= m; j++ {
			row[j] = make([]float64, i*j+1)
			first := float64(i) / float64(i+j)
			for u, p := range last[j] {
				row[j][u+j] += first * p
			}
			for u, p := range row[j-1] {
				row[j][u] += (1 - first) * p
			}
		}
		last = row
	}
	return last[m]
}

// tied is the distribution of twice the sum of k of the given doubled ranks, all
// choices being equally likely: what [wilcoxon] is for ranks with ties.
func tied(doubled []int, k int) []float64 {
	most := 0
	for _, r := range doubled {
		most += r
	}
	ways := make([][]float64, k+1) // of taking c of those seen, by sum
	for c := range ways {
		ways[c] = make([]float64, most+1)
	}
	ways[0][0] = 1
	reach := 0
	for i, r := range doubled {
		reach += r
		for c := min(k, i+1); c > 0; c-- {
			for s := reach; s >= r; s-- {
				ways[c][s] += ways[c-1][s-r]
			}
		}
	}
	all := 0.0
	for _, w := range ways[k] {
		all += w
	}
	for s := range ways[k] {
		ways[k][s] /= all
	}
	return ways[k]
}

// wilcoxonRank is the largest k for which U of n and m values is below k with a
// chance of at most miss, and that chance; 0 if there is none. exact is false
// where it comes from the normal distribution.
func wilcoxonRank(n, m int, miss float64) (k int, chance float64, exact bool) {
	miss *= 1 + 1e-12
	if n*m <= exactProduct {
		sum := 0.0
		for _, p := range wilcoxon(n, m) {
			if sum+p > miss {
				break
			}
			sum += p
			k++
		}
		return k, sum, true
	}
	mean, sd := uNormal(n, m, 0)
	below := func(k int) float64 { return NormalCDF((float64(k) - 0.5 - mean) / sd) }
	k = max(0, int(mean+0.5+sd*NormalQuantile(miss)))
	for k > 0 && below(k) > miss { // rounding
		k--
	}
	if k == 0 {
		return 0, 0, false
	}
	return k, below(k), false
}

// uNormal is the mean and the standard deviation of U when nothing differs.
func uNormal(n, m int, ties float64) (mean, sd float64) {
	a, b := float64(n), float64(m)
	all := a + b
	return a * b / 2, math.Sqrt(a * b / 12 * (all + 1 - ties/(all*(all-1))))
}
