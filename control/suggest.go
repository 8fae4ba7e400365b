package control

import (
	"fmt"
	"slices"
	"strings"
)

// didYouMean is a hint that names the closest of some names, or lists them
// when none is close and they are few.
func didYouMean(word string, from []string) string {
	best, distance := "", 3
	for _, name := range from {
		if d := editDistance(strings.ToLower(word), strings.ToLower(name)); d < distance && d < max(len(name), 2) {
			best, distance = name, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %s?", best)
	case len(from) == 0:
		return ""
	case len(from) <= 8:
		list := slices.Clone(from)
		slices.Sort(list)
		return "there is " + strings.Join(list, ", ")
	}
	return ""
}

// editDistance counts the letters to insert, remove, replace or swap with
// their neighbour to make b of a.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
