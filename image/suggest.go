package image

import (
	"fmt"

	"github.com/muster-hpc/muster/nearest"
)

// suggest returns `did you mean "x"?` for the name nearest to got, or "" when
// none is near enough to be meant.
func suggest(got string, names []string) string {
	near := nearest.Of(got, names)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}
