// Package suggest finds the word that somebody most likely meant, for the "did
// you mean" of an error.
package suggest

import "strings"

// longest is the length in bytes of a word beyond which nothing is compared:
// nobody types it by hand, and comparing costs the product of both lengths.
const longest = 100

// Of finds the candidate that word is most likely a slip of, "" when none is
// near. A slip is a letter too many, too few or wrong, or two that changed
// places; one of them is allowed in every three letters of word, and at least
// one. Letter case and the choice of hyphen or underscore do not count. Of
// candidates equally near it is the first in alphabetical order, so that the
// order of the list does not matter.
func Of(word string, candidates []string) string { return within(word, candidates, len(word)) }

// Slip is Of where a false suspicion costs more than a missed one: two slips
// are allowed at most, and one in words of less than six letters.
func Slip(word string, candidates []string) string { return within(word, candidates, 2) }

func within(word string, candidates []string, most int) string {
	w := plain(word)
	if len(w) > longest {
		return ""
	}
	best, least := "", max(1, min(most, len(w)/3))
	for _, name := range candidates {
		if len(name) > len(w)+least || len(name) < len(w)-least {
			continue
		}
		// Words that share no letter are not slips of each other.
		d := distance(w, plain(name))
		if d > least || d >= max(len(w), len(name)) {
			continue
		}
		if best == "" || d < least || name < best {
			best, least = name, d
		}
	}
	return best
}

func plain(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }

// distance counts the letters to insert, remove, replace or swap with their
// neighbour to make b of a.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
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
		before, last, row = last, row, before
	}
	return last[len(b)]
}
