package experiment

import (
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/stat"
)

// miss is the chance that any of the intervals of a cell misses: all that are looked at
// together hold with 95 %.
const miss = 0.05

// looks says after how many launches of each cell the intervals are looked at, and at which
// level. Whoever looks again and again and stops when an interval is narrow has intervals that
// miss more often than they say; so the looks are few and fixed, and share the chance to miss
// (Bonferroni). The last look is at the end, where nothing can be stopped any more.
func looks(p muster.ExperimentPlan) ([]int, float64) {
	step := 1
	if len(p.Blocks) > 1 {
		step = 2 * p.PerVisit
	}
	last := p.Max
	if p.Within <= 0 {
		return []int{last}, 1 - miss
	}
	list := []int{last}
	for n := p.Min; n < last; n = max(n+1, (3*n+1)/2) {
		if n = (n + step - 1) / step * step; n < last {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	for {
		level := 1 - miss/float64(len(list))
		enough := func(n int) bool { _, _, _, err := stat.OrderRanks(n, 0.5, level); return err == nil }
		kept := slices.DeleteFunc(slices.Clone(list), func(n int) bool { return n < last && !enough(n) })
		if len(kept) == len(list) {
			return list, level
		}
		list = kept
	}
}

// narrow reports whether the interval of a cell is as narrow as was asked for.
func narrow(p muster.ExperimentPlan, values []float64) bool {
	if p.Within <= 0 || len(values) == 0 {
		return false
	}
	v, err := stat.MedianInterval(values, p.Level)
	return err == nil && v.HalfWidth(stat.Median(values)) <= p.Within
}
