package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/storage/volume/volumetest"
)

// served is a driver in a directory of its own, without what it mounts afterwards.
func served(t *testing.T) (*volume.ManagedNFS, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("file systems are mounted by root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("this host has no loop devices")
	}
	dir := filepath.Join(t.TempDir(), "volumes")
	s := volume.NewManagedNFS(dir)
	t.Cleanup(func() {
		if err := s.Unmount(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

func TestServed(t *testing.T) {
	t.Parallel()
	volumetest.Suite(t, muster.DriverManagedNFS, func(t *testing.T) (volume.Driver, string) { return served(t) })
}

// The size holds, grows while it is in use, and does not shrink.
func TestServedSize(t *testing.T) {
	t.Parallel()
	s, dir := served(t)
	v := volumetest.New(muster.VolumeHome, muster.DriverManagedNFS)
	v.Quota = 32 << 20
	if enforced, err := s.Create(t.Context(), v); err != nil || !enforced {
		t.Fatal(enforced, err)
	}
	list, err := s.Mounts(v, volume.HomeTarget, false)
	if err != nil || list[0].Export == nil || *list[0].Export != (volume.Export{Name: string(v.ID) + "-home", Path: list[0].Share.Path}) {
		t.Fatalf("%+v %v", list, err)
	}
	at := filepath.Join(list[0].Share.Path, "f")
	block := make([]byte, 40<<20)
	if err := os.WriteFile(at, block, 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("more than its size fits: %v", err)
	}
	// Not every kernel lets it grow while it is mounted; then it does at the next mount.
	v.Quota = 128 << 20
	create := func() error {
		enforced, err := s.Create(t.Context(), v)
		if err == nil && !enforced {
			err = errors.New("its size is a wish")
		}
		return err
	}
	if err := errors.Join(create(), create()); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(dir, string(v.ID), "image")
	if _, err := os.Stat(image + ".grows"); err == nil {
		if err := errors.Join(s.Unmount(t.Context()), create()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at, block, 0o600); err != nil {
		t.Fatal("it did not grow:", err)
	}
	v.Quota = 64 << 20
	if enforced, err := s.Create(t.Context(), v); err != nil || enforced {
		t.Errorf("enforced %v, %v, though a file system does not shrink", enforced, err)
	}
	// What is deleted gives its room back, a moment later.
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	root, err := os.Open(list[0].Share.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Syncfs(int(root.Fd())), root.Close()); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err := unix.Stat(image, &st); err != nil {
			t.Fatal(err)
		}
		if st.Blocks*512 < 24<<20 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("an empty volume of %d MiB takes %d MiB", st.Size>>20, st.Blocks>>11)
		}
	}
	if err := s.Unmount(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), v); err != nil {
		t.Fatal("mounted again:", err)
	}
}

// A volume that is in use is not erased: it stays whole.
func TestServedInUse(t *testing.T) {
	t.Parallel()
	s, _ := served(t)
	v := volumetest.New(muster.VolumeData, muster.DriverManagedNFS)
	if _, err := s.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	list, err := s.Mounts(v, "/data", false)
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.OpenRoot(list[0].Share.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := open.WriteFile("kept", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Erase(t.Context(), v); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("erased while it is in use: %v", err)
	}
	if b, err := open.ReadFile("kept"); err != nil || string(b) != "x" {
		t.Error(string(b), err)
	}
	_ = open.Close()
	if err := s.Erase(t.Context(), v); err != nil {
		t.Error(err)
	}
}

// What a server without root made, which has no file system, stays as it is, and is not
// exported.
func TestServedWithoutRoot(t *testing.T) {
	t.Parallel()
	s, dir := served(t)
	v := volumetest.New(muster.VolumeData, muster.DriverManagedNFS)
	if _, err := volume.NewHostPath(dir).Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, string(v.ID), "data", "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	list, err := s.Mounts(v, "/data", false)
	if err != nil || list[0].Export != nil {
		t.Fatalf("%+v %v", list, err)
	}
	if _, err := os.Stat(filepath.Join(list[0].Share.Path, "old")); err != nil {
		t.Error(err)
	}
}
