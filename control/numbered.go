package control

import (
	"slices"
	"strings"
)

// sameNumber leaves out the names that end in another number than word does:
// who says n09 does not mean n01, however alike they look.
func sameNumber(word string, from []string) []string {
	number := endNumber(word)
	return slices.DeleteFunc(slices.Clone(from), func(name string) bool {
		n := endNumber(name)
		return number != "" && n != "" && n != number
	})
}

// endNumber is the number at the end of a name without leading zeros, "" when
// there is none.
func endNumber(name string) string {
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	if digits == "" {
		return ""
	}
	return "0" + strings.TrimLeft(digits, "0")
}
