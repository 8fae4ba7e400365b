package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-hpc/muster/internal/suggest"
)

// didYouMean is a hint that names the closest of some names, or lists them
// when none is close and they are few.
func didYouMean(word string, from []string) string {
	best := suggest.Of(word, sameNumber(word, from))
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
