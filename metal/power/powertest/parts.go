package powertest

import (
	"context"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/bmc"
)

// follows: orders change what is true, repeated orders change nothing more, and
// the state follows the truth.
func follows(t *testing.T, s Subject) {
	d := s.open(t)
	s.says(t, d, power.Off)
	for range 2 {
		if err := d.On(within(t, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		s.truth(t, true)
		s.says(t, d, power.On)
	}
	if s.Starts != nil {
		if n := len(s.Starts()); n != 1 {
			t.Errorf("on twice started it %d times", n)
		}
	}
	skipUnless(t, d.Abilities().Off, "it cannot switch off")
	for range 2 {
		if err := d.Off(within(t, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		s.truth(t, false)
		s.says(t, d, power.Off)
	}
	s.quiet(t, d)
	s.quiet(t, s.Target)
}

// bootsOnce: the first start comes from the network, the one after it does not.
func bootsOnce(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Starts != nil && d.Abilities().NetworkBoot, "nobody can tell what it boots")
	if err := d.On(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	want := []bool{true}
	if s.Restart != nil {
		s.Restart()
		want = append(want, false)
	}
	got := s.Starts()
	if len(got) != len(want) {
		t.Fatalf("starts %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("starts from the network: %v, want %v", got, want)
		}
	}
}

// closes: no session is left, and a driver that was closed opens one again.
func closes(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Sessions != nil && d.Abilities().State, "it has no sessions")
	for range 3 {
		if _, err := d.State(within(t, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(within(t, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		if n := s.Sessions(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	}
	c := s.control(t)
	if _, err := c.State(within(t, 20*time.Second), s.Target); err != nil {
		t.Fatal(err)
	}
	c2 := s.control(t)
	if _, err := c2.Boot(within(t, 30*time.Second), s.Target); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); s.Sessions() != 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d sessions are left long after their last use", s.Sessions())
		}
	}
}

// wrongPassword: told at once, and not tried again: accounts are locked.
func wrongPassword(t *testing.T, s Subject) {
	skipUnless(t, s.Break != nil && s.Refused != nil, "it has no password to change")
	s.Break(bmc.Faults{OtherPassword: true})
	_, err := s.control(t).State(within(t, 20*time.Second), s.Target)
	s.wants(t, err, muster.EUnauth)
	for end := time.Now().Add(2 * time.Second); s.Refused() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // it is told by a packet that nobody answers
	}
	time.Sleep(100 * time.Millisecond)
	if n := s.Refused(); n != 1 {
		t.Errorf("the wrong password was tried %d times", n)
	}
	s.Break(bmc.Faults{})
	if _, err := s.open(t).State(within(t, 20*time.Second)); err != nil {
		t.Errorf("the right password again: %v", err)
	}
}

// deaf: the deadline holds.
func deaf(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Break != nil && d.Abilities().State, "it cannot be made deaf")
	s.Break(bmc.Faults{Deaf: true})
	begin := time.Now()
	_, err := d.State(within(t, 300*time.Millisecond))
	s.wants(t, err, muster.ETimeout, muster.EUnavailable)
	s.wants(t, d.On(within(t, 300*time.Millisecond)), muster.ETimeout, muster.EUnavailable)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("two calls of 300 ms took %v", took)
	}
	s.truth(t, false)
	s.Break(bmc.Faults{})
	s.says(t, d, power.Off)
}

// slow: late answers are answers, also to what was sent twice.
func slow(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Break != nil && d.Abilities().State, "it cannot be made slow")
	s.Break(bmc.Faults{Latency: 150 * time.Millisecond})
	if err := d.On(within(t, 30*time.Second)); err != nil {
		t.Fatal(err)
	}
	s.truth(t, true)
	s.says(t, d, power.On)
}

// busy: not now, and now.
func busy(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Break != nil && d.Abilities().State, "it cannot be made busy")
	s.Break(bmc.Faults{Busy: true})
	s.wants(t, d.On(within(t, 20*time.Second)), muster.EUnavailable)
	s.truth(t, false)
	time.AfterFunc(30*time.Millisecond, func() { s.Break(bmc.Faults{}) })
	s.Times = power.Times{Command: 10 * time.Second, Tries: 20, Pause: 20 * time.Millisecond, PauseMost: 40 * time.Millisecond,
		Rise: 5 * time.Second, Fall: 5 * time.Second, Poll: 20 * time.Millisecond, Keep: time.Second}
	if _, err := s.control(t).Boot(within(t, 30*time.Second), s.Target); err != nil {
		t.Error(err)
	}
	s.truth(t, true)
}

// givenUp: who cancels gets away at once.
func givenUp(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Break != nil && d.Abilities().State, "it cannot be made deaf")
	s.Break(bmc.Faults{Deaf: true})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	if _, err := d.State(ctx); err == nil {
		t.Error("an unreachable controller gave a state")
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("giving up took %v", took)
	}
}

// refusesSessions and tableFull: an error that says so, and no lasting harm.
func refusesSessions(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Break != nil && s.Sessions != nil, "it has no sessions")
	s.Break(bmc.Faults{RefusesSessions: true})
	_, err := d.State(within(t, 20*time.Second))
	s.wants(t, err, muster.EUnavailable, muster.ECorrupt)
	s.Break(bmc.Faults{})
	if _, err := s.open(t).State(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
}

func tableFull(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Break != nil && s.Sessions != nil, "it has no sessions")
	s.Break(bmc.Faults{TableFull: true})
	_, err := d.State(within(t, 20*time.Second))
	s.wants(t, err, muster.EUnavailable)
	time.AfterFunc(30*time.Millisecond, func() { s.Break(bmc.Faults{}) })
	s.Times = power.Times{Command: 10 * time.Second, Tries: 20, Pause: 20 * time.Millisecond, PauseMost: 40 * time.Millisecond}
	if _, err := s.control(t).State(within(t, 20*time.Second), s.Target); err != nil {
		t.Errorf("a session became free, and: %v", err)
	}
}

// garbled: damaged answers are not believed.
func garbled(t *testing.T, s Subject) {
	d := s.open(t)
	skipUnless(t, s.Break != nil && s.Sessions != nil, "its answers cannot be damaged")
	s.says(t, d, power.Off)
	s.Break(bmc.Faults{Garbles: true})
	_, err := d.State(within(t, time.Second))
	s.wants(t, err, muster.ECorrupt, muster.EUnavailable, muster.ETimeout)
	s.Break(bmc.Faults{})
	s.says(t, d, power.Off)
}
