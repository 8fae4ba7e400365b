package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/volume"
	"github.com/muster-hpc/muster/volume/volumetest"
)

func TestHostDir(t *testing.T) {
	t.Parallel()
	volumetest.Suite(t, muster.DriverHostDir, func(t *testing.T) (volume.Driver, string) {
		dir := filepath.Join(t.TempDir(), "volumes")
		return volume.NewHostDir(dir), dir
	})
}

// TestAdopt takes over a home of an earlier version, also when it was cut short.
func TestAdopt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "volumes")
	h := volume.NewHostDir(dir)
	id := muster.NewClusterID()
	old := filepath.Join(dir, string(id), "home")
	if err := os.MkdirAll(filepath.Join(old, "alice"), 0o755); err != nil {
		t.Fatal(err)
	}
	if list, err := h.Legacy(); err != nil || len(list) != 1 || list[0] != id {
		t.Fatal(list, err)
	}
	// Whoever has it open goes on using it.
	open, err := os.OpenRoot(old)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	v := volumetest.New(muster.VolumeHome, muster.DriverHostDir)
	for range 2 {
		if err := h.Adopt(v, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	m, err := h.Mounts(v, volume.HomeTarget, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := open.WriteFile("alice/written", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(m[0].Share.Path, "alice", "written")); err != nil {
		t.Error(err)
	}
	if list, err := h.Legacy(); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	// A home that has files is not written over.
	if err := os.MkdirAll(filepath.Join(old, "bob"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := h.Adopt(v, id); err == nil {
		t.Error("written over")
	}
	if list, err := h.Entries(); err != nil || len(list) != 2 {
		t.Error(list, err)
	}
}
