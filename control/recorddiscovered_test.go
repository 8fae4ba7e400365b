package control_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/metal/enrollment"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

func stranger(mac string) muster.DiscoveredMachine {
	return muster.DiscoveredMachine{
		MAC: mac, MACs: []string{mac, "52:54:00:bb:00:01"}, Whole: true, Serial: "S7", UUID: "4C4C4544-0042-3510-8051-B4C04F564432", Endorsement: endorsement(7),
		Facts: &muster.Facts{Cores: 8, Vendor: "Dell Inc.", NICs: []muster.NIC{
			{MAC: mac, Speed: 1e9, Link: "up"}, {MAC: "52:54:00:bb:00:02", Speed: 100e9, Link: "down"},
			{MAC: "52:54:00:bb:00:03", Speed: 10e9, Link: "up"}, {MAC: "52:54:00:bb:00:01", Speed: 25e9, Link: "up"},
		}},
	}
}

func registered(t *testing.T, s *controltest.Site, state muster.RegistrationState) map[muster.MachineID]muster.Registration {
	t.Helper()
	list, err := s.Control.Registered(t.Context(), muster.System(), wire.RegisteredQuery{State: state})
	if err != nil {
		t.Fatal(err)
	}
	out := map[muster.MachineID]muster.Registration{}
	for _, r := range list.Machines {
		out[r.ID] = r
	}
	return out
}

// A machine that nobody knows waits, with what it says of itself; it is written down
// seldom, and approved with the TPM that it showed.
func TestFound(t *testing.T) {
	t.Parallel()
	s, c := metalSite(t)
	find := func(g muster.DiscoveredMachine) error { return s.Control.RecordDiscovered(t.Context(), g) }
	g := stranger("52:54:00:aa:00:09")
	if err := find(g); err != nil {
		t.Fatal(err)
	}
	r, ok := registered(t, s, muster.RegistrationWaiting)["m-525400aa0009"]
	if !ok || r.Serial != "S7" || !strings.HasPrefix(r.UUID, "4c4c") || r.Facts.Cores != 8 || r.Power.Kind != muster.PowerWOL || len(r.ObservedEK) == 0 || len(r.EndorsementKey) > 0 {
		t.Fatalf("%+v", r)
	}
	want := []muster.RegisteredNIC{{MAC: g.MAC, Use: muster.UseManagement}, {MAC: "52:54:00:bb:00:01", Use: muster.UseMessage}}
	if fmt.Sprint(r.NICs) != fmt.Sprint(want) {
		t.Errorf("%+v", r.NICs)
	}
	g.Facts.Cores, g.Serial = 16, "no\nserial"
	for range 2 { // too soon, then not
		if err := find(g); err != nil {
			t.Fatal(err)
		}
		if c.pass(2 * time.Minute); r.Facts.Cores != 8 {
			t.Error("what is not believed writes as often as it likes")
		}
	}
	if r = registered(t, s, "")["m-525400aa0009"]; r.Facts.Cores != 16 || r.Serial != "" {
		t.Errorf("%+v", r)
	}
	// A machine of the site that boots from another of its cards is no new one.
	other := stranger("52:54:00:cc:00:01")
	other.MACs = []string{"52:54:00:aa:00:01"}
	if err := find(other); err != nil || len(registered(t, s, "")) != 2 {
		t.Errorf("%v, %d machines", err, len(registered(t, s, "")))
	}
	if err := find(muster.DiscoveredMachine{MAC: "53:54:00:cc:00:01"}); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("%v", err)
	}
	// Many at once: some are told to say it again.
	if err := find(stranger("52:54:00:cc:00:02")); err != nil {
		t.Error(err)
	}
	if err := find(stranger("52:54:00:cc:00:03")); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("%v", err)
	}
	done, err := s.Control.ChangeRegistered(t.Context(), muster.System(), "m-525400aa0009", wire.RegisteredApprove)
	if err != nil || done[0].What != "approved" || !strings.Contains(done[0].Text, "its TPM") {
		t.Errorf("%+v, %v", done, err)
	}
	c.pass(time.Hour)
	g.Facts.Cores = 1
	if err := find(g); err != nil {
		t.Error(err)
	}
	if r = registered(t, s, muster.RegistrationApproved)["m-525400aa0009"]; r.Facts.Cores != 16 || len(r.EndorsementKey) == 0 {
		t.Errorf("%+v", r)
	}
}

// One source that makes up machine after machine keeps out nobody else; all together are
// bounded, too.
func TestFoundFromOneSource(t *testing.T) {
	t.Parallel()
	s, c := metalSite(t)
	var n int
	find := func(maker, port string) error {
		n++
		g := stranger(fmt.Sprintf("%s:ab:%02x:%02x", maker, n/256, n%256))
		g.MACs, g.Serial, g.UUID, g.Facts.NICs = nil, "", "", nil // each is another machine
		if port != "" {
			g.Switch, g.Port = "sw1", port
		}
		return s.Control.RecordDiscovered(t.Context(), g)
	}
	refused := func(err error) bool { return muster.CodeOf(err) == muster.EUnavailable }
	c.pass(time.Minute)
	if err := find("52:54:00", ""); err != nil {
		t.Fatal(err)
	}
	if err := find("00:25:90", ""); !refused(err) {
		t.Errorf("two in one moment: %v", err)
	}
	c.pass(time.Minute)
	// One host floods behind port 1, with cards of many makers, and one with those of one.
	for i := range 4 {
		if err := find(fmt.Sprintf("00:16:%02x", i), "1"); refused(err) == (i == 0) {
			t.Errorf("machine %d of one port: %v", i, err)
		}
		c.pass(6 * time.Millisecond)
		if err := find("52:54:00", ""); refused(err) == (i == 0) {
			t.Errorf("machine %d of one maker: %v", i, err)
		}
		c.pass(6 * time.Millisecond)
		// Others are heard in the same moments.
		if err := find("52:54:00", fmt.Sprint(2+i)); err != nil {
			t.Errorf("another port is kept out: %v", err)
		}
		c.pass(500 * time.Microsecond)
	}
	if err := find("00:25:90", ""); !refused(err) {
		t.Errorf("faster than all may: %v", err)
	}
	c.pass(50 * time.Millisecond)
	if err := find("00:16:ff", "1"); err != nil {
		t.Errorf("the port that flooded may say it again: %v", err)
	}
}

// However many come, no more wait than a bound; the one goes that is gone for longest, of
// where most come from.
func TestFoundBounded(t *testing.T) {
	t.Parallel()
	s, c := metalSite(t)
	put(t, s, func(tx *store.Tx) error {
		for i := range 1000 {
			err := tx.PutRegistration(muster.Registration{
				ID: muster.MachineID(fmt.Sprintf("m-%04d", i)), State: muster.RegistrationWaiting, Power: muster.PowerAddress{Kind: muster.PowerWOL},
				NICs: []muster.RegisteredNIC{{MAC: fmt.Sprintf("52:54:01:00:%02x:%02x", i/256, i%256), Use: muster.UseManagement}},
				Seen: c.Now().Add(-time.Duration((i*7)%1000) * time.Minute), // the oldest is somewhere
			}, "")
			if err != nil {
				return err
			}
		}
		return nil
	})
	// One that others' flood must not push out: it came long before.
	put(t, s, func(tx *store.Tx) error {
		if err := tx.DeleteRegistration("m-0001", ""); err != nil {
			return err
		}
		return tx.PutRegistration(muster.Registration{
			ID: "m-honest", State: muster.RegistrationWaiting, Power: muster.PowerAddress{Kind: muster.PowerWOL},
			NICs: []muster.RegisteredNIC{{MAC: "00:25:90:00:00:01", Use: muster.UseManagement}}, Seen: c.Now().Add(-30 * 24 * time.Hour),
		}, "")
	})
	if err := s.Control.RecordDiscovered(t.Context(), stranger("52:54:00:aa:00:09")); err != nil {
		t.Fatal(err)
	}
	list := registered(t, s, muster.RegistrationWaiting)
	if _, there := list["m-0857"]; len(list) != 1000 || there { // 857 * 7 = 999 modulo 1000
		t.Errorf("%d wait; the oldest: %v", len(list), there)
	}
	if _, there := list["m-honest"]; !there {
		t.Error("a machine of another source had to go")
	}
}

// Rules take machines in, forbid them, or leave them waiting with the reason.
func TestFoundByRule(t *testing.T) {
	t.Parallel()
	s, c := metalSite(t)
	rules := enrollment.Rules{
		{Name: "no", Match: enrollment.Match{MAC: "52:54:00:dd:*"}, Then: enrollment.Then{State: muster.RegistrationBlocked}},
		{Name: "by port", Match: enrollment.Match{Switch: "sw1", Port: "*"}, Then: enrollment.Then{
			State: muster.RegistrationApproved, Rack: "{neighbour}", Name: "r1-n{port:2}", Power: "ipmi://admin@{name}-bmc", Password: "sesame", Class: "epyc",
		}},
		{Name: "dell", Match: enrollment.Match{Vendor: "dell*"}, Then: enrollment.Then{State: muster.RegistrationApproved, Name: "{serial}"}},
	}
	s.Control.SetPolicy(control.Policy{Approval: rules})
	find := func(g muster.DiscoveredMachine) {
		t.Helper()
		c.pass(time.Minute)
		if err := s.Control.RecordDiscovered(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	find(stranger("52:54:00:dd:00:01"))
	// At first it does not know its switch: it waits, and no later rule decides. What it
	// tells half a minute later does.
	early := stranger("52:54:00:aa:00:16")
	early.Whole = false
	find(early)
	if r := registered(t, s, "")["m-525400aa0016"]; r.State != muster.RegistrationWaiting {
		t.Errorf("%+v", r)
	}
	early.Whole, early.Facts.NICs[0].Neighbour = true, &muster.Neighbour{System: "sw1", Port: "16"}
	if err := s.Control.RecordDiscovered(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	if r := registered(t, s, "")["r1-n16"]; r.State != muster.RegistrationApproved || r.Facts.NICs[0].Neighbour == nil {
		t.Errorf("%+v", r)
	}
	g := stranger("52:54:00:aa:00:17")
	g.Switch, g.Port = "sw1", "17"
	find(g)
	taken := stranger("52:54:00:aa:00:18") // claims the place of another
	taken.Switch, taken.Port = "sw1", "1"
	find(taken)
	find(stranger("52:54:00:aa:00:19"))
	all := registered(t, s, "")
	if r := all["m-525400dd0001"]; r.State != muster.RegistrationBlocked {
		t.Errorf("%+v", r)
	}
	if r := all["r1-n17"]; r.State != muster.RegistrationApproved || r.Power.String() != "ipmi://admin@r1-n17-bmc" || r.Rack != "sw1" || r.Class != "epyc" || r.NICs[0].Port != "17" || len(r.EndorsementKey) == 0 {
		t.Errorf("%+v", r)
	}
	if r := all["m-525400aa0018"]; r.State != muster.RegistrationWaiting || !strings.Contains(r.Remark, "by port") || !strings.Contains(r.Remark, "r1-n01") {
		t.Errorf("%+v", r)
	}
	if r := all["s7"]; r.State != muster.RegistrationApproved {
		t.Errorf("%+v", r)
	}
	var secret []byte
	var texts []string
	put(t, s, func(tx *store.Tx) (err error) {
		if secret, err = tx.PowerSecret("r1-n17"); err != nil {
			return err
		}
		list, err := tx.Audits(store.AuditFilter{})
		for _, a := range list {
			texts = append(texts, a.Object+": "+a.Text)
		}
		return err
	})
	all2 := strings.Join(texts, "\n")
	if string(secret) != "sesame" || strings.Contains(all2, "sesame") {
		t.Errorf("%q", secret)
	}
	for _, want := range []string{
		`^r1-n17: approved .*by port`, `^s7: approved .*dell`, `^m-525400dd0001: blocked .*\bno\b`,
	} {
		if !regexp.MustCompile("(?m)" + want).MatchString(all2) {
			t.Errorf("the audit does not say %q:\n%s", want, all2)
		}
	}
	// What waits is looked at again when it comes again: the rules may have changed.
	s.Control.SetPolicy(control.Policy{Approval: rules[2:]})
	taken.Serial = "S8"
	find(taken)
	if all = registered(t, s, ""); all["s8"].State != muster.RegistrationApproved || all["m-525400aa0018"].ID != "" {
		t.Errorf("%+v", all)
	}
}

// A name of a switch that came over the network does not make this server run a program.
func TestFoundAtAProgram(t *testing.T) {
	t.Parallel()
	s, c := metalSite(t)
	c.pass(time.Minute)
	g := stranger("52:54:00:aa:00:21")
	g.Switch, g.Port = "script:///usr/sbin/poweroff", "1"
	if err := s.Control.RecordDiscovered(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	for _, r := range registered(t, s, "") {
		for _, n := range r.NICs {
			if n.Switch != "" {
				t.Errorf("%s is at %s", n.MAC, n.Switch)
			}
		}
	}
}
