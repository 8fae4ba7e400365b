package image

import (
	"fmt"
	"slices"
)

// suggest returns `did you mean "x"?` for the name nearest to got, or "" when
// none is near enough to be meant.
func suggest(got string, names []string) string {
	best, at := "", 1+max(1, len(got)/3)
	sorted := slices.Sorted(slices.Values(names))
	for _, n := range sorted {
		if len(n)-len(got) >= at || len(got)-len(n) >= at {
			continue
		}
		if d := distance(got, n); d < at {
			best, at = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// distance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b. Long inputs are not compared: nobody means
// them.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 1000
	}
	before, prev := []int(nil), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(b)]
}
