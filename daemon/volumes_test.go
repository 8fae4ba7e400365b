package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/client"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// TestHomesWithoutRecords: a server takes over the homes that an earlier version
// kept without records, and leaves alone what nobody knows.
func TestHomesWithoutRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir, nil)
	k := s.client()
	made, err := k.CreateCluster(t.Context(), client.Create{Format: "yaml", Body: []byte("name: cfd\nnodes: 2\nusers: [alice]\n")})
	if err != nil {
		t.Fatal(err)
	}
	wait := func(want muster.ClusterPhase) wire.Cluster {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			c, err := k.Cluster(t.Context(), string(made.ID))
			if err == nil && c.Status == want {
				return c
			}
			if time.Now().After(end) {
				t.Fatalf("not %s: %+v, %v", want, c, err)
			}
		}
	}
	had := wait(muster.ClusterReady).Volumes[0]
	s.stop()

	// As the earlier version left it.
	volumes := filepath.Join(dir, "volumes")
	old := filepath.Join(volumes, string(made.ID))
	must(t, os.Rename(filepath.Join(volumes, string(had.ID)), old))
	must(t, os.WriteFile(filepath.Join(old, "home", "result"), []byte("x"), 0o600))
	strays := []string{"junk", "c-2222222222", "v-2222222222"}
	for _, n := range strays {
		must(t, os.MkdirAll(filepath.Join(volumes, n, "home"), 0o700))
	}
	db, err := store.Open(t.Context(), filepath.Join(dir, "muster.db"), store.Options{})
	must(t, err)
	must(t, db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		v, err := tx.Volume(had.ID)
		if err != nil {
			return err
		}
		for _, p := range []muster.VolumePhase{muster.VolumeDeleting, muster.VolumeDeleted} {
			v.Phase = p
			if err := tx.PutVolume(v, ""); err != nil {
				return err
			}
		}
		c, err := tx.Cluster(made.ID)
		if err != nil {
			return err
		}
		c.Spec.Retain = 0
		return tx.PutCluster(c, "")
	}))
	must(t, db.Close())

	for range 2 { // and at every later start
		s = start(t, dir, nil)
		c := wait(muster.ClusterReady)
		if len(c.Volumes) != 1 || c.Volumes[0].Name != "cfd-home" || c.Spec.Retain != muster.DefaultRetain {
			t.Fatalf("%+v, kept for %s", c.Volumes, c.Spec.Retain)
		}
		if b, err := os.ReadFile(filepath.Join(volumes, string(c.Volumes[0].ID), "home", "result")); err != nil || string(b) != "x" {
			t.Fatal(string(b), err)
		}
		if _, err := os.Stat(old); !os.IsNotExist(err) {
			t.Error("the old place is still there:", err)
		}
		s.stop()
	}
	s = start(t, dir, nil)
	k = s.client()
	health, err := k.Health(t.Context())
	must(t, err)
	told := ""
	for _, p := range health.Checks {
		if p.Name == "volumes" {
			told = p.Text
		}
	}
	if !strings.Contains(told, "3 directories belong to no volume") {
		t.Errorf("the health page says %q", told)
	}
	for _, n := range strays {
		if _, err := os.Stat(filepath.Join(volumes, n, "home")); err != nil {
			t.Error("what nobody knows was erased:", err)
		}
	}
	if _, err := k.EraseCluster(t.Context(), string(made.ID)); err != nil {
		t.Fatal(err)
	}
	wait(muster.ClusterDeleted)
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		left, _ := os.ReadDir(volumes)
		if len(left) == len(strays) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("left: %v", left)
		}
	}
}

// TestRetainOfTheSite: the site says how long homes are kept.
func TestRetainOfTheSite(t *testing.T) {
	t.Parallel()
	for retain, want := range map[time.Duration]time.Duration{0: muster.DefaultRetain, time.Hour: time.Hour, -1: 0} {
		dir := t.TempDir()
		s := start(t, dir, func(c *daemon.Config) { c.Retain = retain })
		made, err := s.client().CreateCluster(t.Context(), client.Create{Format: "yaml", DryRun: true, Body: []byte("name: a\nnodes: 1\nusers: [alice]\n")})
		if err != nil || made.Spec.Retain != want {
			t.Errorf("%s: %s, %v", retain, made.Spec.Retain, err)
		}
		s.stop()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
