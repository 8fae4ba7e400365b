// Package wildcard compares texts with patterns as shells and the kernel's tables of
// drivers write them: * for any text, ? for one byte, [a-z] for one byte of some. A
// bracket that is not closed stands for itself.
package wildcard

import "strings"

// Match reports whether the whole of a text fits a pattern. It never goes back further
// than the last star, so that it takes time in proportion to both lengths multiplied,
// whatever the pattern.
func Match(pattern, s string) bool {
	star, again := -1, 0
	i, j := 0, 0
	for j < len(s) {
		if i < len(pattern) && pattern[i] == '*' {
			star, again = i, j
			i++
			continue
		}
		if i < len(pattern) {
			if n, ok := one(pattern[i:], s[j]); ok {
				i, j = i+n, j+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		again++
		i, j = star+1, again
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}

// one matches one character with the start of a pattern, and reports how long that
// start is.
func one(pattern string, c byte) (int, bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		end := strings.IndexByte(pattern, ']')
		if end < 0 {
			return 1, c == '['
		}
		set := pattern[1:end]
		for k := 0; k < len(set); k++ {
			if k+2 < len(set) && set[k+1] == '-' {
				if set[k] <= c && c <= set[k+2] {
					return end + 1, true
				}
				k += 2
			} else if set[k] == c {
				return end + 1, true
			}
		}
		return 0, false
	}
	return 1, pattern[0] == c
}
