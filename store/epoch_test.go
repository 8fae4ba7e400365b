package store_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// Frozen, a store takes no change any more, also of who waited for another one to end, and
// is read as before; opened again it takes changes.
func TestFreeze(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "muster.db")
	open := func() *store.DB {
		db, err := store.Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	set := func(db *store.DB, v string) error {
		return db.Update(t.Context(), muster.System(), func(tx *store.Tx) error { return tx.SetMeta("fact", v) })
	}
	get := func(db *store.DB) (v string) {
		if err := db.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
			v, err = tx.Meta("fact")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return v
	}
	db := open()
	why := muster.Errorf(muster.EConflict, "frozen")
	waiter := make(chan error, 1)
	err := db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		go func() { waiter <- set(db, "waited") }()
		db.Freeze(why)
		return tx.SetMeta("fact", "under way")
	})
	if err != nil {
		t.Errorf("what was under way: %v", err)
	}
	for what, err := range map[string]error{"waited": <-waiter, "late": set(db, "late"), "many": db.UpdateMany(t.Context(), muster.System(), func(*store.Tx) error { return nil })} {
		if !errors.Is(err, why) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if v := get(db); v != "under way" {
		t.Errorf("%q", v)
	}
	if s := db.Stats(); s.LastError != nil {
		t.Errorf("it is told as a fault of the disk: %v", s.LastError)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open()
	defer db.Close()
	if err := set(db, "again"); err != nil || get(db) != "again" {
		t.Errorf("opened again: %v", err)
	}
}

// What was proven in one epoch proves nothing in the next: that a human cut a machine off,
// and that a machine is clean.
func TestBeginEpoch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "muster.db")
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	said := time.Now().Add(-time.Minute)
	err = db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		for _, id := range []muster.MachineID{"m1", "m2"} {
			r := muster.Registration{ID: id, State: muster.RegistrationApproved, Power: muster.PowerAddress{Kind: muster.PowerWOL},
				NICs: []muster.RegisteredNIC{{MAC: "52:54:00:00:00:0" + string(id[1:]), Use: muster.UseManagement}}}
			if id == "m1" {
				r.ManualFence = &muster.ManualFence{Asked: said, Why: "deaf", Said: said, By: "carol"}
			}
			if err := tx.PutRegistration(r, ""); err != nil {
				return err
			}
			m := muster.Machine{ID: id, Provider: "metal"}
			phases := []muster.MachinePhase{muster.MachineNew, muster.MachineCleaning, muster.MachineFree}
			if id == "m2" {
				phases = append(phases, muster.MachineSuspect)
			}
			for _, m.Phase = range phases {
				if err := tx.PutMachine(m, ""); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err = errors.Join(err, db.Close(), store.BeginEpoch(t.Context(), path, 7)); err != nil {
		t.Fatal(err)
	}
	if db, err = store.Open(t.Context(), path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), muster.System(), func(tx *store.Tx) error {
		r, err := tx.Registration("m1")
		if err != nil || r.ManualFence != nil {
			t.Errorf("a human's word of before: %+v, %v", r.ManualFence, err)
		}
		for id, want := range map[muster.MachineID]muster.MachinePhase{"m1": muster.MachineCleaning, "m2": muster.MachineSuspect} {
			if m, err := tx.Machine(id); err != nil || m.Phase != want {
				t.Errorf("%s is %s, %v", id, m.Phase, err)
			}
		}
		epoch, err := tx.Meta("epoch")
		if epoch != "7" {
			t.Errorf("epoch %s", epoch)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
