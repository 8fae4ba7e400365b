package storetest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// NewRegistration is a bare machine with two interfaces whose addresses end with n.
func NewRegistration(id muster.MachineID, n string) muster.Registration {
	return muster.Registration{
		ID: id, State: muster.RegistrationApproved, Rack: "r1", Added: NewClock().Now(), By: "root",
		Power: muster.PowerAddress{Kind: muster.PowerIPMI, Address: "10.0.0.11", User: "admin"},
		NICs: []muster.RegisteredNIC{
			{MAC: "52:54:00:00:00:" + n, Use: muster.UseManagement, Switch: "sw1", Port: "7"},
			{MAC: "52:54:00:00:01:" + n, Use: muster.UseMessage},
		},
		Facts: &muster.Facts{Cores: 8, Class: "epyc"},
	}
}

// testIdentities: a serial number or UUID is one machine's, however it is written; what
// identifies nothing, and what a machine says before anybody has looked, is nobody's.
func testIdentities(t *testing.T, fresh freshFunc) {
	s, _ := fresh(t)
	put := func(id muster.MachineID, n string, change func(*muster.Registration)) error {
		r := NewRegistration(id, n)
		change(&r)
		return s.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return tx.PutRegistration(r, "added") })
	}
	const uuid = "11111111-2222-3333-4444-555555555555"
	for _, c := range []struct {
		name   string
		change func(*muster.Registration)
		taken  string
	}{
		{"the first", func(r *muster.Registration) { r.Serial, r.UUID = "Ab 123", uuid }, ""},
		{"the same number", func(r *muster.Registration) { r.Serial = "AB  123" }, "serial"},
		{"the same number of the board", func(r *muster.Registration) { r.UUID = strings.ToUpper(uuid) }, "uuid"},
		{"another", func(r *muster.Registration) { r.Serial = "AB 124" }, ""},
		{"a placeholder", func(r *muster.Registration) { r.Serial = "Default string" }, ""},
		{"the placeholder again", func(r *muster.Registration) { r.Serial = "default string" }, ""},
		{"one that waits", func(r *muster.Registration) { r.State, r.Serial = muster.RegistrationWaiting, "AB 123" }, ""},
	} {
		id := muster.MachineID(strings.ReplaceAll(c.name, " ", "-"))
		err := put(id, fmt.Sprintf("%02x", 0x40+len(c.name)), c.change)
		if (err != nil) != (c.taken != "") || c.taken != "" && (muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), string(id)+"."+c.taken)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// Its own stays its own, and is free when it goes.
	if err := put("the-first", fmt.Sprintf("%02x", 0x40+len("the first")), func(r *muster.Registration) { r.Serial, r.Rack = "AB 123", "r9" }); err != nil {
		t.Error(err)
	}
	if err := s.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return tx.DeleteRegistration("the-first", "gone") }); err != nil {
		t.Fatal(err)
	}
	if err := put("successor", "7f", func(r *muster.Registration) { r.Serial = "AB 123" }); err != nil {
		t.Error(err)
	}
}

// testRegistrations: what is put is found by name and by interface, an interface is
// one machine's, and a secret is only Muster's.
func testRegistrations(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	root := muster.Actor{Name: "root", Admin: true}
	a, b := NewRegistration("r1-n01", "01"), NewRegistration("r1-n02", "02")
	b.State = muster.RegistrationWaiting
	update(t, db, root, func(tx *store.Tx) error {
		for _, r := range []muster.Registration{b, a} {
			if err := tx.PutRegistration(r, "added"); err != nil {
				return err
			}
		}
		if err := tx.PutPowerKey(a.ID, []byte("open")); err != nil {
			return err
		}
		return tx.PutPowerSecret(a.ID, []byte("sesame"))
	})
	view(t, db, root, func(tx *store.Tx) error {
		if got, err := tx.Registrations(store.RegistrationFilter{}); err != nil || !reflect.DeepEqual(got, []muster.Registration{a, b}) {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err := tx.Registrations(store.RegistrationFilter{State: muster.RegistrationWaiting}); err != nil || len(got) != 1 || got[0].ID != b.ID {
			t.Errorf("waiting: got %+v, %v", got, err)
		}
		for _, n := range a.NICs {
			if got, err := tx.RegistrationOf(n.MAC); err != nil || !reflect.DeepEqual(got, a) {
				t.Errorf("by %s: got %+v, %v", n.MAC, got, err)
			}
		}
		if _, err := tx.RegistrationOf("52:54:00:00:00:09"); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("nobody's interface: %v", err)
		}
		if _, err := tx.PowerSecret(a.ID); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("an administrator reads a secret: %v", err)
		}
		if _, err := tx.PowerKey(a.ID); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("an administrator reads a key: %v", err)
		}
		for key, want := range map[string]bool{"open": true, "shut": false, "": false} {
			if is, err := tx.IsPowerKey(a.ID, []byte(key)); err != nil || is != want {
				t.Errorf("%q is the key: %v, %v", key, is, err)
			}
		}
		if is, err := tx.IsPowerKey(b.ID, nil); err != nil || !is {
			t.Errorf("there is no key, and that is not so: %v", err)
		}
		return nil
	})
	view(t, db, muster.System(), func(tx *store.Tx) error {
		if v, err := tx.PowerSecret(a.ID); err != nil || string(v) != "sesame" {
			t.Errorf("the secret is %q, %v", v, err)
		}
		if _, err := tx.PowerSecret(b.ID); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("no secret: %v", err)
		}
		if v, err := tx.PowerKey(a.ID); err != nil || string(v) != "open" {
			t.Errorf("the key is %q, %v", v, err)
		}
		if _, err := tx.PowerKey(b.ID); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("no key: %v", err)
		}
		return nil
	})
	try := func(who muster.Actor, f func(tx *store.Tx) error) muster.Code {
		return muster.CodeOf(db.Update(context.Background(), who, f))
	}
	twice, wrong := NewRegistration("r1-n03", "01"), NewRegistration("r1-n04", "04")
	wrong.NICs[0].MAC = "nothing"
	for name, c := range map[string]struct {
		want muster.Code
		who  muster.Actor
		do   func(tx *store.Tx) error
	}{
		"another's interface": {muster.EConflict, root, func(tx *store.Tx) error { return tx.PutRegistration(twice, "") }},
		"wrong":               {muster.EInvalid, root, func(tx *store.Tx) error { return tx.PutRegistration(wrong, "") }},
		"a user adds":         {muster.ENotFound, alice(), func(tx *store.Tx) error { return tx.PutRegistration(NewRegistration("x", "05"), "") }},
		"a user reads":        {muster.ENotFound, alice(), func(tx *store.Tx) error { _, err := tx.Registration(a.ID); return err }},
		"a user forgets":      {muster.ENotFound, alice(), func(tx *store.Tx) error { return tx.DeleteRegistration(a.ID, "") }},
		"a user's secret":     {muster.ENotFound, alice(), func(tx *store.Tx) error { return tx.PutPowerSecret(a.ID, []byte("x")) }},
		"a user's key":        {muster.ENotFound, alice(), func(tx *store.Tx) error { return tx.PutPowerKey(a.ID, []byte("x")) }},
		"secret of nobody":    {muster.ENotFound, root, func(tx *store.Tx) error { return tx.PutPowerSecret("r9", []byte("x")) }},
		"forget nobody":       {muster.ENotFound, root, func(tx *store.Tx) error { return tx.DeleteRegistration("r9", "") }},
	} {
		if got := try(c.who, c.do); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
	// Interfaces that a machine gives up are free for another one.
	changed := a
	changed.NICs = []muster.RegisteredNIC{{MAC: "52:54:00:00:00:11", Use: muster.UseManagement}}
	update(t, db, root, func(tx *store.Tx) error {
		if err := tx.PutRegistration(changed, "other interfaces"); err != nil {
			return err
		}
		return tx.PutRegistration(twice, "added")
	})
	update(t, db, root, func(tx *store.Tx) error { return tx.DeleteRegistration(a.ID, "sold") })
	view(t, db, muster.System(), func(tx *store.Tx) error {
		if _, err := tx.PowerSecret(a.ID); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("the secret outlives its machine: %v", err)
		}
		if _, err := tx.PowerKey(a.ID); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("the key outlives its machine: %v", err)
		}
		if _, err := tx.RegistrationOf("52:54:00:00:00:11"); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("an interface outlives its machine: %v", err)
		}
		return nil
	})
	var said []string
	for _, l := range audits(t, db, root, store.AuditFilter{Kind: muster.AuditRegistration}) {
		said = append(said, l.Object+" "+l.From+" "+l.To+" "+l.Text)
	}
	if want := []string{
		"r1-n02  waiting added", "r1-n01  approved added", "r1-n01 approved approved other interfaces", "r1-n03  approved added", "r1-n01 approved  sold",
	}; !reflect.DeepEqual(said, want) {
		t.Errorf("the audit says %q", said)
	}
	if len(audits(t, db, alice(), store.AuditFilter{Kind: muster.AuditRegistration})) != 0 {
		t.Error("a user reads of registrations in the audit")
	}
}
