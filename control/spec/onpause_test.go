package spec

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// What becomes of jobs in a pause: other words for the same, and what cannot be had says why.
func TestOnPause(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]muster.OnPause{"": "", "stop": muster.PauseWait, "wait": muster.PauseWait, "requeue": muster.PauseRequeue, "freeze": muster.PauseFreeze, "save": muster.PauseSave, "hibernate": muster.PauseHibernate} {
		if got, bad := ParseOnPause(text); got != want || bad != nil {
			t.Errorf("%q is %q, %+v", text, got, bad)
		}
	}
	for text, reason := range map[string]muster.Reason{"hibernat": muster.ReasonBadValue, "freez": muster.ReasonBadValue, "Wait": muster.ReasonBadValue} {
		if got, bad := ParseOnPause(text); got != "" || bad == nil || bad.Reason != reason || bad.Field != "on_pause" || bad.Hint == "" {
			t.Errorf("%q is %q, %+v", text, got, bad)
		}
	}
}

// What cannot be saved is refused in the request already.
func TestCannotSave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vm   *muster.VMOptions
		want muster.Reason
	}{
		"none": {nil, muster.ReasonNeedsVirtualMachine}, "virtio": {&muster.VMOptions{}, ""},
		"virtual function": {&muster.VMOptions{NIC: muster.VMNICFunction}, muster.ReasonCannotSave},
	} {
		got := muster.Reason("")
		if bad := CannotSave(c.vm); bad != nil {
			got = bad.Reason
		}
		v := &validator{}
		v.checkSave(&muster.Spec{OnPause: muster.PauseSave, VM: c.vm})
		if got != c.want || len(v.problems) != 0 != (c.want != "") {
			t.Errorf("%s: %q, %+v", name, got, v.problems)
		}
	}
}

// Virtual machines are saved: what only others can do is refused in the request.
func TestVirtualMachinesAreSaved(t *testing.T) {
	t.Parallel()
	for o, want := range map[muster.OnPause]muster.Reason{muster.PauseFreeze: muster.ReasonCannotFreeze, muster.PauseHibernate: muster.ReasonCannotHibernate, muster.PauseRequeue: ""} {
		v := &validator{}
		v.checkSave(&muster.Spec{OnPause: o, VM: &muster.VMOptions{}})
		if len(v.problems) > 1 || (want != "") != (len(v.problems) == 1) || want != "" && v.problems[0].Reason != want {
			t.Errorf("%s: %+v", o, v.problems)
		}
		v = &validator{}
		if v.checkSave(&muster.Spec{OnPause: o}); len(v.problems) > 0 {
			t.Errorf("%s without virtual machines: %+v", o, v.problems)
		}
	}
}
