package cli

import (
	"testing"

	"github.com/muster-hpc/muster/wire"
)

// A token that only reads is not shown as an administrator, whoever's it is.
func TestYouText(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]wire.Server{
		"alice":                {You: "alice"},
		"root (administrator)": {You: "root", Admin: true},
		"watch (read-only token: it reads the whole site and changes nothing)": {You: "watch", Admin: true, ReadOnly: true},
	} {
		if got := youText(s); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

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
