package image

import (
	"fmt"

	"github.com/muster-hpc/muster/internal/suggest"
)

// didYouMean returns `did you mean "x"?` for the name nearest to got, or "" when
// none is near enough to be meant.
func didYouMean(got string, names []string) string {
	near := suggest.Of(got, names)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}
