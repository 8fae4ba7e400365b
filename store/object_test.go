package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// Records of which there are few are kept, found by who may, and deleted.
func TestObjects(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "muster.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	root := muster.Actor{Name: "root", Admin: true}
	alice := muster.Actor{Name: "alice", Projects: []string{"sea"}}
	bob := muster.Actor{Name: "bob", Projects: []string{"sky"}}
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	err = db.Update(t.Context(), root, func(tx *store.Tx) error {
		for range 2 { // a change is no second one
			if err := tx.PutProject(muster.Project{Name: "sea", Limits: muster.Limits{Machines: 4}}, "limits set"); err != nil {
				return err
			}
		}
		return tx.PutMaintenanceWindow(muster.MaintenanceWindow{ID: "w-1", Machines: []muster.MachineID{"m1"}, From: at, By: "root"}, "entered")
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(t.Context(), alice, func(tx *store.Tx) error {
		if err := tx.PutProject(muster.Project{Name: "sea"}, "mine now"); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("who is no administrator changed a project: %v", err)
		}
		tpl := muster.Template{Name: "solver", Project: "sea", Owner: "alice", Created: at, From: "c-2345678923"}
		if err := tx.PutTemplate(tpl, "saved"); err != nil {
			return err
		}
		tpl.Owner, tpl.From = "alice", "c-2345678924"
		return tx.PutTemplate(tpl, "saved again")
	})
	if err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]int{"alice": 1, "bob": 0, "root": 1} {
		actor := map[string]muster.Actor{"alice": alice, "bob": bob, "root": root}[who]
		err := db.View(t.Context(), actor, func(tx *store.Tx) error {
			projects, err := tx.Projects()
			if err != nil {
				return err
			}
			templates, err := tx.Templates()
			if len(projects) != want || len(templates) != want {
				t.Errorf("%s sees %d projects and %d templates", who, len(projects), len(templates))
			}
			windows, werr := tx.MaintenanceWindows()
			if len(windows) != 1 || werr != nil {
				t.Errorf("%s sees %d windows: %v", who, len(windows), werr)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err = db.Update(t.Context(), bob, func(tx *store.Tx) error { return tx.DeleteTemplate("sea", "solver", "gone") })
	if muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("somebody else deleted a template: %v", err)
	}
	if err := db.Update(t.Context(), alice, func(tx *store.Tx) error { return tx.DeleteTemplate("sea", "solver", "gone") }); err != nil {
		t.Error(err)
	}
}
