package providertest

import (
	"testing"

	"github.com/muster-hpc/muster/provider"
)

// freezes makes a machine stand still and go on, as often as it is told. Neither wakes one that is off, and
// one that stands still can be switched off, and boots another attempt.
func (s *suite) freezes(t *testing.T) {
	if !s.p.Capabilities().Freezes {
		w := s.boot(t, 0)
		if errs := s.p.Ensure(s.context(t), []provider.DesiredState{{Machine: w.Machine, Power: provider.PowerFreeze}}); errs == nil {
			t.Error("frozen by a provider that cannot")
		}
		return
	}
	w := s.boot(t, 0)
	tell := func(p provider.Power) {
		t.Helper()
		if errs := s.p.Ensure(s.context(t), []provider.DesiredState{{Machine: w.Machine, Power: p}}); errs != nil {
			t.Fatal(p, errs)
		}
	}
	is := func(still bool) {
		t.Helper()
		if seen := s.look(t, w.Machine); seen.State != provider.StateRunning || seen.Attempt != w.Boot.Attempt || seen.Frozen != still {
			t.Errorf("%+v, want frozen %v", seen, still)
		}
	}
	is(false)
	for range 2 {
		tell(provider.PowerFreeze)
		tell(provider.PowerFreeze)
		is(true)
		tell(provider.PowerThaw)
		tell(provider.PowerThaw)
		is(false)
	}
	tell(provider.PowerFreeze)
	s.off(t, w.Machine)
	tell(provider.PowerFreeze)
	tell(provider.PowerThaw)
	if seen := s.look(t, w.Machine); seen.State != provider.StateOff || seen.Frozen {
		t.Errorf("off, and %+v", seen)
	}
	w = s.boot(t, 0)
	tell(provider.PowerFreeze)
	w = s.boot(t, 0)
	is(false)
	s.off(t, w.Machine)
}
