package powertest

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/bmc"
)

// lies: a controller that always says on is not believed to have switched off,
// and one that always says off is not believed to have switched on.
func lies(t *testing.T, s Subject) {
	skipUnless(t, s.Break != nil, "it cannot lie")
	s.Times = impatient()
	c := s.control(t)
	s.Break(bmc.Faults{SaysOff: true})
	r, err := c.Boot(within(t, 30*time.Second), s.Target)
	s.wants(t, err, muster.ETimeout)
	if err != nil && muster.ReasonOf(err) != muster.ReasonControllerNotBelieved {
		t.Errorf("the error does not say that it lies: %v", err)
	}
	unproven(t, r)
	s.Break(bmc.Faults{SaysOn: true})
	r, err = c.Off(within(t, 30*time.Second), s.Target)
	s.wants(t, err, muster.ETimeout)
	unproven(t, r)
	rec := c.Fence(within(t, 30*time.Second), s.Target)
	if rec.Proven {
		t.Errorf("a fence was proven by a controller that says on: %+v", rec.Steps)
	}
}

// ignores: accepted is not done.
func ignores(t *testing.T, s Subject) {
	skipUnless(t, s.Break != nil, "it cannot ignore orders")
	s.Times = impatient()
	c := s.control(t)
	s.Break(bmc.Faults{Ignores: true})
	_, err := c.Boot(within(t, 30*time.Second), s.Target)
	s.wants(t, err, muster.ETimeout)
	s.truth(t, false)
	s.Break(bmc.Faults{})
	if r, err := c.Boot(within(t, 30*time.Second), s.Target); err != nil || r.State != power.On {
		t.Fatalf("%v, %v", r, err)
	}
	s.Break(bmc.Faults{Ignores: true})
	rec := c.Fence(within(t, 30*time.Second), s.Target)
	s.truth(t, true)
	if rec.Proven {
		t.Errorf("a machine that is on was fenced: %+v", rec.Steps)
	}
}

// forgets: a network boot that did not stay set is told, before the power.
func forgets(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Break != nil && d.Abilities().NetworkBoot && !s.Blind, "it has no boot order that can be read")
	s.Break(bmc.Faults{Forgets: true})
	s.wants(t, d.On(within(t, 20*time.Second)), muster.EConflict)
	s.truth(t, false)
}

// fences: off is proven by who can prove it, and only then.
func fences(t *testing.T, s Subject) {
	c := s.control(t)
	able, err := c.Abilities(s.Target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Boot(within(t, 30*time.Second), s.Target); err != nil {
		t.Fatal(err)
	}
	rec := c.Fence(within(t, 30*time.Second), s.Target)
	if rec.Proven != (able.ProvesOff && able.Off) {
		t.Errorf("proven %v with abilities %+v: %+v", rec.Proven, able, rec.Steps)
	}
	if len(rec.Steps) == 0 || rec.Machine != s.Target.Machine || rec.At.IsZero() {
		t.Errorf("a record without evidence: %+v", rec)
	}
	if able.Off {
		s.truth(t, false)
	}
	s.quiet(t, rec)
}

// bootsAnew: a machine that is on starts from the network all the same.
func bootsAnew(t *testing.T, s Subject) {
	c := s.control(t)
	able, err := c.Abilities(s.Target)
	if err != nil {
		t.Fatal(err)
	}
	skipUnless(t, able.Off && able.State && s.Starts != nil, "nobody can tell")
	for range 2 {
		r, err := c.Boot(within(t, 30*time.Second), s.Target)
		if err != nil {
			t.Fatal(err)
		}
		if r.State != power.On || len(r.Steps) < 3 {
			t.Errorf("result %+v", r)
		}
	}
	if got := s.Starts(); len(got) != 2 || !got[0] || !got[1] {
		t.Errorf("starts from the network: %v", got)
	}
}

func unproven(t *testing.T, r power.Result) {
	t.Helper()
	if r.Proven() {
		t.Errorf("a lie is called a proof: %+v", r)
	}
	for _, step := range r.Steps {
		if !step.OK {
			return
		}
	}
	t.Errorf("no step says what failed: %+v", r.Steps)
}

func impatient() power.Times {
	return power.Times{Command: 10 * time.Second, Tries: 2, Pause: 10 * time.Millisecond, PauseMost: 20 * time.Millisecond,
		Rise: 300 * time.Millisecond, Fall: 300 * time.Millisecond, Poll: 30 * time.Millisecond, Keep: time.Second}
}
