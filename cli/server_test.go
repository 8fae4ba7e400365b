package cli

import (
	"testing"

	"github.com/muster-hpc/muster/wire"
)

// Epochs are shown where they say something.
func TestEpochText(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]wire.Server{
		"":                        {Epoch: 1},
		"2":                       {Epoch: 2},
		"1; another has taken it": {Epoch: 1, Superseded: "another has taken it"},
	} {
		if got := epochText(s); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}
