// Package plaintext writes numbers of things as sentences have them.
package plaintext

import (
	"fmt"
	"strings"
)

// Count writes "1 node", "5 nodes", "2 launches". The noun is one whose plural ends so.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	for _, end := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(noun, end) {
			return fmt.Sprintf("%d %ses", n, noun)
		}
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
