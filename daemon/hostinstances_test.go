package daemon

import (
	"path/filepath"
	"testing"
)

// What the host remembers of a directory goes with the directory, once nothing of it runs.
func TestForgetGone(t *testing.T) {
	t.Parallel()
	h, here := hostInstances{t.TempDir()}, t.TempDir()
	gone := filepath.Join(here, "gone")
	for instance, state := range map[string]string{"there": here, "gone": gone, "runs": gone} {
		if err := h.note(instance, state); err != nil {
			t.Fatal(err)
		}
	}
	h.forgetGone(func(instance string) bool { return instance == "runs" })
	for instance, want := range map[string]string{"there": here, "gone": "", "runs": gone} {
		if got := h.stateOf(instance); got != want {
			t.Errorf("%s: %q, want %q", instance, got, want)
		}
	}
}
