package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/internal/lastcontact"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

var _ power.ManualFencing = (*control.ManualFencing)(nil)

// byHand is a site with a bare machine, and who asks about it.
type byHand struct {
	*controltest.Site
	*control.ManualFencing
	heard time.Time
}

func newByHand(t *testing.T) *byHand {
	t.Helper()
	s := &byHand{}
	heard := &lastcontact.Contacts{}
	heard.AddHeard(func(muster.MachineID) time.Time { return s.heard })
	s.Site = controltest.Start(t, controltest.Options{Control: func(c *control.Config) { c.Contacts = heard }})
	s.ManualFencing = &control.ManualFencing{Store: s.Site.Store, Clock: muster.SystemClock{}, Contacts: heard}
	err := s.Site.Store.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, id := range []muster.MachineID{"r1-n01", "r1-n02"} {
			r := muster.Registration{ID: id, State: muster.RegistrationApproved, Power: muster.PowerAddress{Kind: muster.PowerWOL},
				NICs: []muster.RegisteredNIC{{MAC: "52:54:00:00:00:" + string(id[len(id)-2:]), Use: muster.UseManagement}}}
			if err := tx.PutRegistration(r, "registered"); err != nil {
				return err
			}
		}
		return tx.PutMachine(muster.Machine{ID: "r1-n01", Provider: "metal", Phase: muster.MachineNew}, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *byHand) say(t *testing.T, who muster.Actor, set string) ([]wire.RegisteredChange, error) {
	t.Helper()
	return s.Control.ChangeRegistered(t.Context(), who, set, wire.RegisteredFenced)
}

// waits reports whether the machine shows that it waits for a human.
func (s *byHand) waits(t *testing.T) bool {
	t.Helper()
	m, err := s.Control.Machine(t.Context(), root(), "r1-n01")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range m.Conditions {
		if c.Code == "manual-fence-required" {
			if !strings.Contains(c.Hint, "muster machine confirm-off r1-n01 --yes") || !strings.Contains(c.Text, "its agent is deaf") || c.Since.IsZero() {
				t.Errorf("it shows %+v", c)
			}
			return true
		}
	}
	return false
}

// Nobody is believed before the question; an administrator's answer holds until the
// machine is heard or switched on, also over a restart of the server.
func TestFencedByHand(t *testing.T) {
	t.Parallel()
	s := newByHand(t)
	_, err := s.say(t, root(), "r1-n01")
	code(t, err, muster.EConflict)
	if s.waits(t) {
		t.Error("it waits for nobody")
	}
	for range 2 { // to ask again is no new question
		_, err = s.Off(t.Context(), "r1-n01", "its agent is deaf")
		if e := code(t, err, muster.EUnavailable); !strings.Contains(e.Message, "muster machine confirm-off r1-n01 --yes") {
			t.Errorf("it says %q", e.Message)
		}
	}
	if n := s.lines(t, "waits for manual fencing"); n != 1 {
		t.Errorf("%d lines of the audit ask", n)
	}
	if !s.waits(t) {
		t.Error("the machine does not show that it waits")
	}
	_, err = s.say(t, muster.Actor{Name: "alice"}, "r1-n01")
	if err == nil {
		t.Error("a user is believed")
	}
	_, err = s.say(t, root(), "r1-n[01-02]") // all or none
	code(t, err, muster.EConflict)
	if _, err = s.Off(t.Context(), "r1-n01", ""); err == nil {
		t.Error("half of a set was taken")
	}
	s.heard = time.Now()
	_, err = s.say(t, root(), "r1-n01")
	if e := code(t, err, muster.EConflict); e.Reason != muster.ReasonStillHeard {
		t.Errorf("of a machine that is heard: %q", e.Message)
	}
	s.heard = time.Now().Add(-time.Minute)
	done, err := s.say(t, root(), "r1-n01")
	if err != nil || len(done) != 1 || done[0].What != "confirmed-off" {
		t.Fatalf("%+v, %v", done, err)
	}
	if n := s.lines(t, "root says"); n != 1 {
		t.Errorf("%d lines of the audit tell who said so", n)
	}
	if s.waits(t) {
		t.Error("it still shows that it waits")
	}
	again := &control.ManualFencing{Store: s.Site.Store, Clock: muster.SystemClock{}}
	for range 2 { // whoever was killed meanwhile asks again
		if by, err := again.Off(t.Context(), "r1-n01", "x"); err != nil || by != "root" {
			t.Errorf("%q, %v", by, err)
		}
	}
	s.heard = time.Now().Add(time.Second)
	if _, err := s.Off(t.Context(), "r1-n01", "its agent is deaf"); muster.ReasonOf(err) != muster.ReasonNeedsHands {
		t.Errorf("a machine that was heard since: %v", err)
	}
	if !s.waits(t) {
		t.Error("it is not asked anew")
	}
}

func TestAnAnswerEndsWithTheNextBoot(t *testing.T) {
	t.Parallel()
	s := newByHand(t)
	_, err := s.Off(t.Context(), "r1-n01", "its agent is deaf")
	code(t, err, muster.EUnavailable)
	if _, err := s.say(t, root(), "r1-n01"); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(t.Context(), "r1-n01"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Off(t.Context(), "r1-n01", "its agent is deaf")
	code(t, err, muster.EUnavailable)
	if err := s.Forget(t.Context(), "r1-n01"); err != nil || s.waits(t) {
		t.Errorf("a question that was taken back: %v", err)
	}
	for _, id := range []muster.MachineID{"r1-n01", "r1-n02", "nobody"} {
		if err := s.Forget(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := s.Off(t.Context(), "nobody", ""); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("nobody: %v", err)
	}
}

func (s *byHand) lines(t *testing.T, part string) int {
	t.Helper()
	n := 0
	err := s.Site.Store.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		lines, err := tx.Audits(store.AuditFilter{})
		for _, l := range lines {
			if strings.Contains(l.Text, part) {
				n++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
