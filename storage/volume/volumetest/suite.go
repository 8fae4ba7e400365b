// Package volumetest is the suite that every driver of volumes passes which
// keeps them where this server sees them.
package volumetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
)

// New is a volume of a kind.
func New(kind muster.VolumeKind, driver muster.VolumeDriver) muster.Volume {
	return muster.Volume{
		ID: muster.NewVolumeID(), Name: "x", Owner: "alice", Project: "sea", Kind: kind, Driver: driver, Phase: muster.VolumeReady,
	}
}

// Suite runs all tests. fresh gives an empty driver and the directory that it
// keeps volumes in.
func Suite(t *testing.T, driver muster.VolumeDriver, fresh func(t *testing.T) (volume.Driver, string)) {
	for name, test := range map[string]func(*testing.T, volume.Driver, string, muster.VolumeDriver){
		"Mounts": testMounts, "Again": testAgain, "Closed": testClosed, "Erase": testErase, "Hostile": testHostile,
		"Interrupted": testInterrupted, "Usage": testUsage, "Names": testNames,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, dir := fresh(t)
			test(t, d, dir, driver)
		})
	}
}

// share is the directory that a volume's nodes mount first.
func share(t testing.TB, d volume.Driver, v muster.Volume) string {
	t.Helper()
	list, err := d.Mounts(v, "/data", false)
	if err != nil || len(list) == 0 || list[0].Share == nil {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0].Share.Path
}

func create(t testing.TB, d volume.Driver, v muster.Volume) {
	t.Helper()
	if _, err := d.Create(context.Background(), v); err != nil {
		t.Fatal(err)
	}
}

func testMounts(t *testing.T, d volume.Driver, dir string, driver muster.VolumeDriver) {
	for kind, targets := range map[muster.VolumeKind][]string{
		muster.VolumeHome: {"/home"}, muster.VolumeData: {"/data"}, muster.VolumeScheduler: {"/var/lib/slurm", "/var/lib/mysql"},
	} {
		v := New(kind, driver)
		create(t, d, v)
		target := "/data"
		if kind == muster.VolumeHome {
			target = "/home"
		}
		list, err := d.Mounts(v, target, kind == muster.VolumeData)
		if err != nil || len(list) != len(targets) {
			t.Fatalf("%s: %+v, %v", kind, list, err)
		}
		for i, m := range list {
			s := m.Share
			if s == nil || s.Target != targets[i] || s.ReadOnly != (kind == muster.VolumeData) {
				t.Errorf("%s: %+v", kind, s)
			}
			if m.HeadOnly != (kind == muster.VolumeScheduler) || s.Seed != m.HeadOnly {
				t.Errorf("%s: %+v", kind, m)
			}
			if rel, err := filepath.Rel(dir, s.Path); err != nil || !filepath.IsLocal(rel) {
				t.Errorf("%s lies at %s, outside %s", kind, s.Path, dir)
			}
			if st, err := os.Lstat(s.Path); err != nil || !st.IsDir() {
				t.Errorf("%s: %v", s.Path, err)
			}
		}
	}
}

// testAgain: making a volume that exists changes nothing in it.
func testAgain(t *testing.T, d volume.Driver, _ string, driver muster.VolumeDriver) {
	v := New(muster.VolumeData, driver)
	create(t, d, v)
	at := share(t, d, v)
	if err := os.WriteFile(filepath.Join(at, "kept"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(at, 0o750); err != nil {
		t.Fatal(err)
	}
	create(t, d, v)
	if b, err := os.ReadFile(filepath.Join(at, "kept")); err != nil || string(b) != "x" {
		t.Error(string(b), err)
	}
	if st, _ := os.Stat(at); st.Mode().Perm() != 0o750 {
		t.Errorf("its mode became %s", st.Mode())
	}
}

// testClosed: nobody on the server gets at what root of a node left.
func testClosed(t *testing.T, d volume.Driver, dir string, driver muster.VolumeDriver) {
	v := New(muster.VolumeHome, driver)
	create(t, d, v)
	for at := filepath.Dir(share(t, d, v)); len(at) >= len(dir); at = filepath.Dir(at) {
		if st, err := os.Stat(at); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", at, st.Mode(), err)
		}
	}
}

func testErase(t *testing.T, d volume.Driver, dir string, driver muster.VolumeDriver) {
	v, other := New(muster.VolumeScheduler, driver), New(muster.VolumeHome, driver)
	create(t, d, v)
	create(t, d, other)
	for range 2 { // and once more, as after a crash
		if err := d.Erase(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != string(other.ID) {
		t.Errorf("left: %v %v", left, err)
	}
	if err := d.Erase(t.Context(), New(muster.VolumeHome, driver)); err != nil {
		t.Error("one that was never made:", err)
	}
	create(t, d, v)
	if list, err := os.ReadDir(share(t, d, v)); err != nil || len(list) > 0 {
		t.Errorf("made again: %v %v", list, err)
	}
}

// testHostile erases what a tenant made to be hard to erase, and nothing else.
func testHostile(t *testing.T, d volume.Driver, dir string, driver muster.VolumeDriver) {
	v := New(muster.VolumeHome, driver)
	create(t, d, v)
	at := share(t, d, v)
	outside := filepath.Join(filepath.Dir(dir), "outside")
	if err := os.MkdirAll(filepath.Join(outside, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(outside, "sub", "precious")
	must(t, os.WriteFile(precious, []byte("x"), 0o644))
	must(t, os.Symlink(outside, filepath.Join(at, "link")))
	must(t, os.Symlink("/", filepath.Join(at, "root")))
	must(t, os.Symlink("..", filepath.Join(at, "up")))
	must(t, os.Symlink("loop", filepath.Join(at, "loop")))
	if err := os.Link(precious, filepath.Join(at, "hard")); err != nil && !errors.Is(err, unix.EXDEV) {
		t.Fatal(err)
	}
	must(t, unix.Mkfifo(filepath.Join(at, "fifo"), 0o600))
	must(t, os.Mkdir(filepath.Join(at, "closed"), 0o700))
	must(t, os.WriteFile(filepath.Join(at, "closed", "f"), nil, 0o000))
	must(t, os.WriteFile(filepath.Join(at, ".muster-erase"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(at, "new\nline \xff"), nil, 0o600))
	must(t, os.Mkdir(filepath.Join(at, "wide"), 0o700))
	for i := range 3000 {
		must(t, os.Mkdir(filepath.Join(at, "wide", strconv.Itoa(i)), 0o700))
	}
	deep(t, at, 5000)
	// Who looks at every file gives up somewhere; who asks the file system does not.
	if _, part, err := d.Usage(t.Context(), v); err != nil || part != (driver == muster.DriverHostPath) {
		t.Errorf("usage of a tree deeper than is looked at: part %v, %v", part, err)
	}
	must(t, d.Erase(t.Context(), v))
	if _, err := os.Lstat(filepath.Join(dir, string(v.ID))); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it is still there:", err)
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "x" {
		t.Error("what lies outside was touched:", err)
	}
}

// deep makes directories within directories, far beyond the longest path.
func deep(t testing.TB, at string, n int) {
	t.Helper()
	fd, err := unix.Open(at, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range n {
		must(t, unix.Mkdirat(fd, "deep", 0o700))
		next, err := unix.Openat(fd, "deep", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		_ = unix.Close(fd)
		fd = next
	}
	_ = unix.Close(fd)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testInterrupted: an erasure that was cut short at any point goes on.
func testInterrupted(t *testing.T, d volume.Driver, dir string, driver muster.VolumeDriver) {
	for stop := range 12 {
		v := New(muster.VolumeHome, driver)
		create(t, d, v)
		at := share(t, d, v)
		for i := range 4 {
			sub := filepath.Join(at, strconv.Itoa(i), "a", "b")
			must(t, os.MkdirAll(sub, 0o700))
			must(t, os.WriteFile(filepath.Join(sub, "f"), []byte("x"), 0o600))
		}
		if err := d.Erase(&countdown{Context: t.Context(), left: stop}, v); err == nil && stop < 3 {
			t.Fatal("the context does not count")
		}
		must(t, d.Erase(t.Context(), v))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// countdown is cancelled when it was asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func testUsage(t *testing.T, d volume.Driver, _ string, driver muster.VolumeDriver) {
	v := New(muster.VolumeData, driver)
	create(t, d, v)
	before, _, err := d.Usage(t.Context(), v)
	must(t, err)
	at := share(t, d, v)
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 7)
	}
	must(t, os.WriteFile(filepath.Join(at, "f"), block, 0o600))
	must(t, os.Link(filepath.Join(at, "f"), filepath.Join(at, "again"))) // counts once
	must(t, os.Symlink("/", filepath.Join(at, "root")))
	f, err := os.Open(filepath.Join(at, "f"))
	must(t, err)
	must(t, f.Sync()) // until then nothing may be on the disk
	must(t, f.Close())
	after, part, err := d.Usage(t.Context(), v)
	if grown := after - before; err != nil || part || grown < 1<<20 || grown > 1<<20+64<<10 {
		t.Errorf("grown by %d, part %v, %v", grown, part, err)
	}
	_, _, err = d.Usage(t.Context(), New(muster.VolumeData, driver))
	if muster.CodeOf(err) != muster.ENotFound {
		t.Error("usage of none:", err)
	}
}

// testNames: an ID that is none leads nowhere.
func testNames(t *testing.T, d volume.Driver, dir string, driver muster.VolumeDriver) {
	outside := filepath.Join(filepath.Dir(dir), "v-outside00")
	must(t, os.MkdirAll(outside, 0o700))
	for _, id := range []muster.VolumeID{"", ".", "..", "../v-outside00", "/", "v-", "v-1", "v-outside00/..", "v-23456789\x00b", "v-ABCDEFGHJK", "c-2345678901"} {
		v := New(muster.VolumeHome, driver)
		v.ID = id
		if _, err := d.Create(t.Context(), v); err == nil {
			t.Errorf("%q was made", id)
		}
		if _, err := d.Mounts(v, "/home", false); err == nil {
			t.Errorf("%q can be mounted", id)
		}
		if err := d.Erase(t.Context(), v); err == nil {
			t.Errorf("%q was erased", id)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}
