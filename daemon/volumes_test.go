package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon"
	"github.com/muster-hpc/muster/wire"
)

// TestStrayDirectories: a server counts directories of no volume on record, and leaves
// them alone; what it made itself goes with its cluster.
func TestStrayDirectories(t *testing.T) {
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
	wait(muster.ClusterReady)
	s.stop()

	volumes := filepath.Join(dir, "volumes")
	strays := []string{"junk", "c-2222222222", "v-2222222222"}
	for _, n := range strays {
		must(t, os.MkdirAll(filepath.Join(volumes, n, "home"), 0o700))
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
	if !strings.Contains(told, "3 ") {
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
		if err != nil || time.Duration(made.Spec.Retain) != want {
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
