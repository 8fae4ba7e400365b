package storetest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// NewVolume is a volume that was just asked for.
func NewVolume(name, owner, project string, kind muster.VolumeKind) muster.Volume {
	return muster.Volume{
		ID: muster.NewVolumeID(), Name: name, Owner: owner, Project: project, Kind: kind,
		Driver: muster.DriverHostPath, Phase: muster.VolumeReady,
	}
}

// testVolumes: what is put is found again, by ID, by name and in lists.
func testVolumes(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	c := NewCluster("cfd", "alice", "sea")
	home, data := NewVolume("cfd-home", "alice", "sea", muster.VolumeHome), NewVolume("inputs", "bob", "sea", muster.VolumeData)
	home.Cluster = c.ID
	update(t, db, alice(), func(tx *store.Tx) error {
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
		return tx.PutVolume(home, "")
	})
	update(t, db, bob(), func(tx *store.Tx) error { return tx.PutVolume(data, "") })
	view(t, db, alice(), func(tx *store.Tx) error {
		got, err := tx.Volume(home.ID)
		if err != nil {
			return err
		}
		if got.Created.IsZero() || got.PhaseSince.IsZero() {
			t.Errorf("no times: %+v", got)
		}
		got.Created, got.PhaseSince = time.Time{}, time.Time{}
		if !reflect.DeepEqual(got, home) {
			t.Errorf("%+v, want %+v", got, home)
		}
		for ref, want := range map[string]muster.VolumeID{
			string(home.ID): home.ID, "cfd-home": home.ID, "sea/inputs": data.ID, string(data.ID): data.ID,
		} {
			if v, err := tx.FindVolume(ref); err != nil || v.ID != want {
				t.Errorf("%s: %+v, %v", ref, v, err)
			}
		}
		_, err = tx.FindVolume("input")
		wantCode(t, err, muster.ENotFound)
		if e := (*muster.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Hint, `"inputs"`) {
			t.Errorf("no suggestion: %v", err)
		}
		for name, f := range map[string]struct {
			filter store.VolumeFilter
			want   int
		}{
			"all":     {store.VolumeFilter{}, 2},
			"living":  {store.VolumeFilter{Living: true}, 2},
			"cluster": {store.VolumeFilter{Cluster: c.ID}, 1},
			"kind":    {store.VolumeFilter{Kind: muster.VolumeData}, 1},
			"owner":   {store.VolumeFilter{Owner: "bob"}, 1},
			"project": {store.VolumeFilter{Project: "lake"}, 0},
			"phase":   {store.VolumeFilter{Phases: []muster.VolumePhase{muster.VolumeRetained}}, 0},
			"limit":   {store.VolumeFilter{Limit: 1}, 1},
		} {
			if list, err := tx.Volumes(f.filter); err != nil || len(list) != f.want {
				t.Errorf("%s: %d volumes, want %d, %v", name, len(list), f.want, err)
			}
		}
		return nil
	})
	// One home for a cluster, one name in a project.
	second := NewVolume("other", "alice", "sea", muster.VolumeHome)
	second.Cluster = c.ID
	wantCode(t, db.Update(context.Background(), alice(), func(tx *store.Tx) error { return tx.PutVolume(second, "") }), muster.EConflict)
	taken := NewVolume("inputs", "alice", "sea", muster.VolumeData)
	wantCode(t, db.Update(context.Background(), alice(), func(tx *store.Tx) error { return tx.PutVolume(taken, "") }), muster.EConflict)
	// Its life, each step with a line.
	steps := []muster.VolumePhase{muster.VolumeRetained, muster.VolumeReady, muster.VolumeRetained, muster.VolumeDeleting, muster.VolumeDeleted}
	for _, p := range steps {
		home.Phase = p
		update(t, db, alice(), func(tx *store.Tx) error { return tx.PutVolume(home, "") })
	}
	lines := audits(t, db, alice(), store.AuditFilter{Kind: muster.AuditVolume, Cluster: c.ID})
	if len(lines) != len(steps)+1 || lines[len(lines)-1].To != "deleted" || lines[0].From != "" {
		t.Errorf("the audit has %+v", lines)
	}
	// What is erased does not come back, and its name is free.
	home.Phase = muster.VolumeReady
	wantCode(t, db.Update(context.Background(), alice(), func(tx *store.Tx) error { return tx.PutVolume(home, "") }), muster.EConflict)
	update(t, db, alice(), func(tx *store.Tx) error {
		return tx.PutVolume(NewVolume("cfd-home", "alice", "sea", muster.VolumeHome), "")
	})
	// What it is does not change.
	for name, change := range map[string]func(*muster.Volume){
		"owner":  func(v *muster.Volume) { v.Owner = "alice" },
		"kind":   func(v *muster.Volume) { v.Kind = muster.VolumeHome },
		"driver": func(v *muster.Volume) { v.Driver = muster.DriverNFS },
		"source": func(v *muster.Volume) { v.Source = "x" },
	} {
		v := data
		change(&v)
		if err := db.Update(context.Background(), bob(), func(tx *store.Tx) error { return tx.PutVolume(v, "") }); muster.CodeOf(err) != muster.EConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// testForeignVolumes: who is not in the project is told the same of a volume
// that exists and of one that does not.
func testForeignVolumes(t *testing.T, fresh freshFunc) {
	db, _ := fresh(t)
	v := NewVolume("inputs", "alice", "sea", muster.VolumeData)
	update(t, db, alice(), func(tx *store.Tx) error { return tx.PutVolume(v, "") })
	for name, try := range map[string]func(*store.Tx, muster.Volume) error{
		"ID":        func(tx *store.Tx, v muster.Volume) error { _, err := tx.Volume(v.ID); return err },
		"find ID":   func(tx *store.Tx, v muster.Volume) error { _, err := tx.FindVolume(string(v.ID)); return err },
		"find name": func(tx *store.Tx, v muster.Volume) error { _, err := tx.FindVolume(v.Name); return err },
		"find both": func(tx *store.Tx, v muster.Volume) error { _, err := tx.FindVolume("sea/" + v.Name); return err },
		"put":       func(tx *store.Tx, v muster.Volume) error { return tx.PutVolume(v, "") },
	} {
		run := func(v muster.Volume) muster.Error {
			err := db.Update(context.Background(), carol(), func(tx *store.Tx) error { return try(tx, v) })
			wantCode(t, err, muster.ENotFound)
			var found *muster.Error
			errors.As(err, &found)
			e := *found
			for _, s := range []string{string(v.ID), "sea/" + v.Name, v.Name} {
				e.Message, e.Hint = strings.ReplaceAll(e.Message, s, "?"), strings.ReplaceAll(e.Hint, s, "?")
			}
			return e
		}
		if there, not := run(v), run(NewVolume("nothing", "alice", "sea", muster.VolumeData)); !reflect.DeepEqual(there, not) {
			t.Errorf("%s: a hidden volume gives %+v, an absent one %+v", name, there, not)
		}
	}
	stolen := v
	stolen.Owner, stolen.Project = "carol", "sky"
	wantCode(t, db.Update(context.Background(), carol(), func(tx *store.Tx) error { return tx.PutVolume(stolen, "") }), muster.ENotFound)
	planted := NewVolume("x", "alice", "sea", muster.VolumeData)
	wantCode(t, db.Update(context.Background(), bob(), func(tx *store.Tx) error { return tx.PutVolume(planted, "") }), muster.EForbidden)
	view(t, db, carol(), func(tx *store.Tx) error {
		list, err := tx.Volumes(store.VolumeFilter{})
		if len(list) != 0 {
			t.Errorf("carol sees %+v", list)
		}
		return err
	})
	if lines := audits(t, db, carol(), store.AuditFilter{Kind: muster.AuditVolume}); len(lines) != 0 {
		t.Errorf("carol is told %+v", lines)
	}
}
