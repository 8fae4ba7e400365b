package configure

import (
	"slices"
	"testing"
)

func TestEndedUnits(t *testing.T) {
	t.Parallel()
	units := []string{"munge.service", "slurmd.service", "mariadb.service"}
	for text, want := range map[string][]string{
		"active\nactive\nactive\n":          nil,
		"active\nfailed\ninactive\n":        {"slurmd.service", "mariadb.service"},
		"active\nactivating\nreloading\n":   nil,
		"":                                  nil,
		"Failed to connect to bus: no such": nil,
		"active\nfailed\n":                  nil,
	} {
		if got := endedUnits(units, text); !slices.Equal(got, want) {
			t.Errorf("%q: %q instead of %q", text, got, want)
		}
	}
}
