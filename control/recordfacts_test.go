package control_test

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-tpm/tpm2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/pki/attest"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// handClock is set by hand.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *handClock) After(d time.Duration) <-chan time.Time {
	return muster.SystemClock{}.After(d)
}

func (c *handClock) pass(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// metalSite has the bare machine r1-n01, free, of provider metal.
func metalSite(t *testing.T) (*controltest.Site, *handClock) {
	t.Helper()
	c := &handClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s := controltest.Start(t, controltest.Options{Control: func(x *control.Config) { x.Clock = c }})
	put(t, s, func(tx *store.Tx) error {
		if err := tx.PutRegistration(muster.Registration{
			ID: "r1-n01", State: muster.RegistrationApproved, Rack: "r1", Power: muster.PowerAddress{Kind: muster.PowerWOL},
			NICs: []muster.RegisteredNIC{{MAC: "52:54:00:aa:00:01", Use: muster.UseManagement}},
		}, "registered"); err != nil {
			return err
		}
		for _, p := range []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree} {
			if err := tx.PutMachine(muster.Machine{ID: "r1-n01", Provider: "metal", Phase: p, LastSeen: c.Now()}, ""); err != nil {
				return err
			}
		}
		return nil
	})
	return s, c
}

// known is what the store has of r1-n01, and how many lines the audit has.
func known(t *testing.T, s *controltest.Site) (r muster.Registration, m muster.Machine, lines int) {
	t.Helper()
	err := s.Store.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
		if r, err = tx.Registration("r1-n01"); err != nil {
			return err
		}
		if m, err = tx.Machine("r1-n01"); err != nil {
			return err
		}
		list, err := tx.Audits(store.AuditFilter{})
		lines = len(list)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, m, lines
}

func facts() muster.Facts {
	return muster.Facts{
		Vendor: "M", Product: "P", Serial: "S", Processor: "CPU", Cores: 64, Threads: 128, Memory: 512 << 30, TPM: true, Class: "a lie",
		DIMMs: []muster.DIMM{{Slot: "A1", Size: 448 << 30}, {Slot: "A3", Size: 64 << 30}},
		NICs:  []muster.NIC{{Name: "eth0", MAC: "52:54:00:aa:00:01", Speed: 25e9, Neighbour: &muster.Neighbour{System: "sw1", Port: "7"}}},
	}
}

func conditionOf(m muster.Machine, code muster.ConditionCode) string {
	for _, c := range m.Conditions {
		if c.Code == code {
			return c.Text
		}
	}
	return ""
}

// What a machine says of itself is kept; what it lost is a finding that keeps it from
// new clusters, until it is back or an administrator accepts it.
func TestTold(t *testing.T) {
	t.Parallel()
	s, c := metalSite(t)
	tell := func(f muster.Facts, trust muster.Trust, at time.Time) {
		t.Helper()
		if err := s.Control.RecordFacts(t.Context(), "r1-n01", f, trust, at); err != nil {
			t.Fatal(err)
		}
	}
	first := c.Now()
	tell(facts(), muster.TrustNetwork, first)
	r, m, lines := known(t, s)
	if r.Facts == nil || r.Facts.Memory != 512<<30 || r.Facts.Class != "" || !r.Seen.Equal(first) || r.Trust != muster.TrustNetwork || len(r.Changed) > 0 || len(m.Conditions) > 0 {
		t.Fatalf("%+v %+v", r, m)
	}
	// Nothing new: nothing is written within an hour.
	f := facts()
	f.NICs[0].Neighbour, f.NICs[0].Link, f.Memory = nil, "up", f.Memory-1<<20
	tell(f, muster.TrustNetwork, c.pass(59*time.Minute))
	if r, _, n := known(t, s); !r.Seen.Equal(first) || n != lines {
		t.Errorf("a boot that tells nothing new is written down: %v", r.Seen)
	}
	tell(f, muster.TrustNetwork, c.pass(time.Minute))
	if r, _, n := known(t, s); !r.Seen.Equal(c.Now()) || n != lines || r.Facts.NICs[0].Neighbour == nil {
		t.Errorf("after an hour: %v, %d lines, %+v", r.Seen, n-lines, r.Facts.NICs)
	}
	// A discovery that was asked for is done, however soon.
	c.pass(time.Minute)
	asked, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "r1-n01", wire.RegisteredDiscover)
	if err != nil || asked[0].What != "asked" || !strings.Contains(asked[0].Text, "boots once") {
		t.Errorf("%+v, %v", asked, err)
	}
	tell(f, muster.TrustNetwork, c.pass(time.Minute))
	if r, _, _ := known(t, s); !r.Seen.After(r.Asked) {
		t.Errorf("asked at %v, seen at %v", r.Asked, r.Seen)
	}
	// More trust, and a change that takes nothing away.
	f = facts()
	f.Firmware = "1.0"
	tell(f, muster.TrustTPM, c.pass(time.Minute)) // not known before: no change
	f.Firmware = "1.1"
	tell(f, muster.TrustTPM, c.pass(time.Minute))
	r, m, _ = known(t, s)
	if r.Trust != muster.TrustTPM || len(r.Changed) != 1 || m.Intent != muster.IntentNone || !strings.Contains(conditionOf(m, "hardware-changed"), `"1.0" and is "1.1"`) {
		t.Errorf("%+v %+v", r, m)
	}
	// A DIMM is lost: it is drained, and stays so at the next boot.
	less := f
	less.DIMMs, less.Memory = less.DIMMs[:1], 448<<30
	tell(less, muster.TrustTPM, c.pass(time.Minute))
	tell(less, muster.TrustTPM, c.pass(2*time.Hour))
	r, m, _ = known(t, s)
	want := regexp.MustCompile("memory: 512 GiB .*448 GiB .*A3")
	if text := conditionOf(m, "hardware-changed"); !want.MatchString(text) || m.Intent != muster.IntentDrain || m.IntentBy != "muster" || !want.MatchString(m.IntentWhy) || r.Accepted.Memory != 512<<30 {
		t.Errorf("%q, %+v", text, m)
	}
	history, err := s.Control.MachineHistory(t.Context(), muster.System(), "r1-n01", wire.Page{Limit: 10})
	if err != nil || !slices.ContainsFunc(history.Events, func(e muster.MachineEvent) bool { return want.MatchString(e.Text) }) {
		t.Errorf("%+v, %v", history, err)
	}
	// It is back: the machine, too.
	tell(f, muster.TrustTPM, c.pass(time.Minute))
	if r, m, _ = known(t, s); m.Intent != muster.IntentNone || len(r.Changed) != 1 || strings.Contains(conditionOf(m, "hardware-changed"), "DIMM") {
		t.Errorf("%+v %+v", r.Changed, m)
	}
	// What an administrator wants stays. What is accepted is no finding any more.
	tell(less, muster.TrustTPM, c.pass(time.Minute))
	if _, err := s.Control.ChangeMachines(t.Context(), muster.System(), "r1-n01", wire.MachineMaintenance, wire.MachineChange{}); err != nil {
		t.Fatal(err)
	}
	done, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "r1-n01", wire.RegisteredApprove)
	if err != nil || done[0].What != "accepted" || !want.MatchString(done[0].Text) {
		t.Errorf("%+v, %v", done, err)
	}
	if r, m, _ = known(t, s); r.Accepted != nil || len(r.Changed) > 0 || len(m.Conditions) > 0 || m.Intent != muster.IntentMaintenance {
		t.Errorf("%+v %+v", r, m)
	}
	tell(less, muster.TrustTPM, c.pass(time.Minute))
	if r, m, _ = known(t, s); len(r.Changed) > 0 || len(m.Conditions) > 0 {
		t.Errorf("%+v %+v", r, m)
	}
	if err := s.Control.RecordFacts(t.Context(), "r9", f, muster.TrustTPM, c.Now()); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("%v", err)
	}
}

// A machine that was approved by hand and drained because it lost something is used
// again once that is accepted.
func TestAcceptLoss(t *testing.T) {
	t.Parallel()
	s, c := metalSite(t)
	less := facts()
	less.Cores = 32
	for _, f := range []muster.Facts{facts(), less} {
		if err := s.Control.RecordFacts(t.Context(), "r1-n01", f, muster.TrustNetwork, c.pass(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if _, m, _ := known(t, s); m.Intent != muster.IntentDrain {
		t.Fatalf("%+v", m)
	}
	if _, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "r1-n01", wire.RegisteredApprove); err != nil {
		t.Fatal(err)
	}
	if r, m, _ := known(t, s); m.Intent != muster.IntentNone || len(m.Conditions) > 0 || r.Facts.Cores != 32 {
		t.Errorf("%+v", m)
	}
	again, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "r1-n01", wire.RegisteredApprove)
	if err != nil || again[0].What != "unchanged" {
		t.Errorf("%+v, %v", again, err)
	}
}

// endorsement is the public area of an RSA endorsement key that no TPM has.
func endorsement(first byte) []byte {
	k := tpm2.RSAEKTemplate
	n := bytes.Repeat([]byte{0xa5}, 256)
	n[0], n[255] = first|0x80, 1
	k.Unique = tpm2.NewTPMUPublicID(tpm2.TPMAlgRSA, &tpm2.TPM2BPublicKeyRSA{Buffer: n})
	return tpm2.Marshal(tpm2.New2B(k))
}

// A TPM that is shown is enrolled by an approval. Another one is a finding of its own,
// and is not enrolled by showing it.
func TestToldKey(t *testing.T) {
	t.Parallel()
	s, c := metalSite(t)
	a, b := endorsement(1), endorsement(2)
	show := func(key []byte) {
		t.Helper()
		if err := s.Control.RecordObservedEK(t.Context(), "r1-n01", key); err != nil {
			t.Fatal(err)
		}
	}
	show(a)
	r, m, lines := known(t, s)
	if len(r.EndorsementKey) > 0 || !bytes.Equal(r.ObservedEK, a) || len(m.Conditions) > 0 {
		t.Fatalf("%+v %+v", r, m)
	}
	show(a)
	show(b) // too soon
	if r, _, n := known(t, s); !bytes.Equal(r.ObservedEK, a) || n != lines {
		t.Error("what is not believed writes as often as it likes")
	}
	done, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "r1-n01", wire.RegisteredApprove)
	if err != nil || done[0].What != "accepted" || !strings.Contains(done[0].Text, attest.Fingerprint(a)) {
		t.Errorf("%+v, %v", done, err)
	}
	c.pass(time.Hour)
	show(b)
	r, m, _ = known(t, s)
	if text := conditionOf(m, "tpm-changed"); !bytes.Equal(r.EndorsementKey, a) || !strings.Contains(text, attest.Fingerprint(b)) || !strings.Contains(text, attest.Fingerprint(a)) || m.Intent != muster.IntentNone {
		t.Errorf("%q, %+v", text, m)
	}
	c.pass(time.Hour)
	show(a) // it was a mistake
	if _, m, _ = known(t, s); len(m.Conditions) > 0 {
		t.Errorf("%+v", m.Conditions)
	}
	c.pass(time.Hour)
	show(b)
	if _, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "r1-n01", wire.RegisteredApprove); err != nil {
		t.Fatal(err)
	}
	if r, m, _ = known(t, s); !bytes.Equal(r.EndorsementKey, b) || len(m.Conditions) > 0 {
		t.Errorf("%+v %+v", r, m)
	}
	if err := s.Control.RecordObservedEK(t.Context(), "r1-n01", []byte("x")); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("%v", err)
	}
}

// A machine in use is not discovered, nor one that is none of the site.
func TestDiscoverRefused(t *testing.T) {
	t.Parallel()
	s, _ := metalSite(t)
	s.AddMachines(1)
	put(t, s, func(tx *store.Tx) error {
		return tx.PutRegistration(muster.Registration{
			ID: "m-1", State: muster.RegistrationWaiting, Power: muster.PowerAddress{Kind: muster.PowerWOL},
			NICs: []muster.RegisteredNIC{{MAC: "52:54:00:aa:00:09", Use: muster.UseManagement}},
		}, "it came by itself")
	})
	if _, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "m-1", wire.RegisteredDiscover); muster.ReasonOf(err) != muster.ReasonNotApproved || !strings.Contains(err.Error(), "waiting") {
		t.Errorf("%v", err)
	}
	put(t, s, func(tx *store.Tx) error {
		m, err := tx.Machine("r1-n01")
		if err != nil {
			return err
		}
		m.Phase = muster.MachineSuspect
		return tx.PutMachine(m, "")
	})
	if _, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "r1-n01", wire.RegisteredDiscover); muster.ReasonOf(err) != muster.ReasonMachineSuspect {
		t.Errorf("%v", err)
	}
	if r, _, _ := known(t, s); !r.Asked.IsZero() {
		t.Errorf("%v", r.Asked)
	}
}

// The name of a machine that was retired is not given to another one, nor to itself again.
func TestRetiredNamesStay(t *testing.T) {
	t.Parallel()
	s, _ := metalSite(t)
	setPhase(t, s, "r1-n01", muster.MachineRetired)
	if _, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "r1-n01", wire.RegisteredForget); err != nil {
		t.Fatal(err)
	}
	again := wire.BareMachine{
		Name: "r1-n01", Power: muster.PowerAddress{Kind: muster.PowerWOL},
		NICs: []muster.RegisteredNIC{{MAC: "52:54:00:aa:00:01", Use: muster.UseManagement}},
	}
	_, err := s.Control.Register(t.Context(), muster.System(), wire.RegisterRequest{Machines: []wire.BareMachine{again}})
	e := (*muster.Error)(nil)
	if !errors.As(err, &e) || len(e.Problems) != 1 || e.Problems[0].Reason != muster.ReasonMachineRetired {
		t.Errorf("%v", err)
	}
}
