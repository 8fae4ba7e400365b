package ipmi

import (
	"slices"
	"testing"

	"github.com/muster-hpc/muster"
)

// What may be registered is what the driver knows.
func TestQuirksAreThoseOfAddresses(t *testing.T) {
	t.Parallel()
	if got, want := quirkNames(), muster.PowerQuirks(muster.PowerIPMI); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func quirkNames() []string {
	var names []string
	for _, q := range quirks() {
		if q.name != "" {
			names = append(names, q.name)
		}
	}
	return names
}
