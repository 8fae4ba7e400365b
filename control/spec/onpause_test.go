package spec

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// What becomes of jobs in a pause: other words for the same, and what cannot be had says why.
func TestOnPause(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]muster.OnPause{"": "", "stop": muster.PauseWait, "wait": muster.PauseWait, "requeue": muster.PauseRequeue, "freeze": muster.PauseFreeze} {
		if got, bad := ParseOnPause(text); got != want || bad != nil {
			t.Errorf("%q is %q, %+v", text, got, bad)
		}
	}
	for text, reason := range map[string]muster.Reason{"save": muster.ReasonNeedsVirtualMachine, "hibernate": muster.ReasonBadValue, "freez": muster.ReasonBadValue, "Wait": muster.ReasonBadValue} {
		if got, bad := ParseOnPause(text); got != "" || bad == nil || bad.Reason != reason || bad.Field != "on_pause" || bad.Hint == "" {
			t.Errorf("%q is %q, %+v", text, got, bad)
		}
	}
}
