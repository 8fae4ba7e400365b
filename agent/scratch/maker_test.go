package scratch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// loops shows files full of data as disks.
func loops(t *testing.T, size int64, n int) (paths, files []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes loop devices and mounts")
	}
	for range n {
		file := filepath.Join(t.TempDir(), "disk")
		if err := os.WriteFile(file, bytes.Repeat([]byte("data"), int(size/4)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("losetup", "--find", "--show", file).Output()
		if err != nil {
			t.Skipf("no loop device: %v", err)
		}
		dev := strings.TrimSpace(string(out))
		t.Cleanup(func() {
			if out, err := exec.Command("losetup", "--detach", dev).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		paths, files = append(paths, dev), append(files, file)
	}
	return paths, files
}

func run(ctx context.Context, program string, args ...string) error {
	if out, err := exec.CommandContext(ctx, program, args...).CombinedOutput(); err != nil {
		return errors.New(string(out))
	}
	return nil
}

// inPrivateMounts runs a test again in a process whose mounts nobody else sees, and
// reports whether this is that process. A mount namespace that another program makes
// meanwhile would hold copies of ours: the disk would stay in use after it was
// unmounted here.
func inPrivateMounts(t *testing.T) bool {
	t.Helper()
	const mark = "MUSTER_PRIVATE_MOUNTS"
	if os.Getenv(mark) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes loop devices and mounts")
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), mark+"=yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // Go makes it private
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("in a process of its own: %v", err)
	}
	return false
}

// Named disks become file systems where everybody may write; a disk that is not
// named keeps every byte; a second call leaves all as it is, and a new boot does not.
func TestMake(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("needs mkfs.ext4: install e2fsprogs")
	}
	if !inPrivateMounts(t) {
		return
	}
	const size = 32 << 20
	paths, files := loops(t, size, 3)
	var have []muster.Disk
	where := map[string]string{}
	for i, p := range paths {
		d := muster.Disk{Name: filepath.Base(p), Serial: string(rune('A' + i)), Size: size}
		have, where[d.Name] = append(have, d), p
	}
	at := filepath.Join(t.TempDir(), "scratch")
	var said []string
	m := &Maker{
		Disks: func() []muster.Disk { return have }, Path: func(d muster.Disk) string { return where[d.Name] },
		Find: exec.LookPath, Run: run, At: at, Clock: muster.SystemClock{},
		Say: func(f string, a ...any) { said = append(said, f); t.Logf(f, a...) },
	}
	down := func() {
		for _, x := range []string{at, at + "2"} {
			if err := unix.Unmount(x, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
				t.Error(err)
			}
		}
	}
	t.Cleanup(down)
	// The first is not there: the second has its place, and it is told.
	order := []wire.CleanDisk{{Serial: "Z", Size: size}, {Serial: "C", Size: size}, {Serial: "A", Size: size}}
	if err := m.Make(t.Context(), order); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("a disk that is missing is not told: %v", err)
	}
	for _, x := range []string{at, at + "2"} {
		st, err := os.Stat(x)
		if err != nil || st.Mode().Perm() != 0o777 || st.Mode()&os.ModeSticky == 0 || !mounted(x) {
			t.Errorf("%s: %v %v", x, st, err)
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(x, &fs); err != nil || fs.Flags&unix.ST_NOSUID == 0 || fs.Flags&unix.ST_NODEV == 0 || fs.Type != unix.EXT4_SUPER_MAGIC {
			t.Errorf("%s: %+v %v", x, fs, err)
		}
	}
	if !mountedFrom(t, at, paths[2]) {
		t.Error("the first disk that works is not the first place")
	}
	if b, err := os.ReadFile(files[1]); err != nil || !bytes.Equal(b, bytes.Repeat([]byte("data"), size/4)) {
		t.Errorf("a disk that is not named was touched: %v", err)
	}
	kept := filepath.Join(at, "kept")
	if err := os.WriteFile(kept, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Make(t.Context(), order); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("a second start of the unit erased what is in use: %v", err)
	}
	// A disk in use is not taken, whatever the order says.
	other := *m
	other.At = at + "-other"
	if err := other.Make(t.Context(), order[1:2]); err == nil {
		t.Error("a disk that is mounted was made anew")
	}
	down()
	for _, p := range paths { // the kernel may let go of a device a moment after its file system is gone
		for tries := 0; ; tries++ {
			fd, err := unix.Open(p, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
			if err == nil {
				_ = unix.Close(fd)
				break
			}
			if !errors.Is(err, unix.EBUSY) || tries == 1000 {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	// Others of the host set up loop devices, too, and claim for a moment one that is taken:
	// what is made already is left as it is, so it may be asked for again.
	err := m.Make(t.Context(), order[1:])
	for tries := 0; err != nil && tries < 100; tries++ {
		time.Sleep(50 * time.Millisecond)
		err = m.Make(t.Context(), order[1:])
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(kept); err == nil {
		t.Error("a new boot shows what an earlier one left")
	}
}

func mountedFrom(t *testing.T, at, dev string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(b), dev+" "+at+" ext4 ")
}

// An image that can make no file system is told so, and nothing is touched.
func TestNoProgram(t *testing.T) {
	t.Parallel()
	said := ""
	m := &Maker{
		Disks: func() []muster.Disk { t.Error("looked at disks"); return nil }, At: filepath.Join(t.TempDir(), "scratch"),
		Find: func(string) (string, error) { return "", exec.ErrNotFound }, Say: func(f string, _ ...any) { said += f }, Clock: muster.SystemClock{},
	}
	if err := m.Make(t.Context(), []wire.CleanDisk{{Serial: "A", Size: 1}}); err != nil || !strings.Contains(said, "neither mkfs.ext4 nor mkfs.xfs") {
		t.Errorf("%v %q", err, said)
	}
	// Where there is only one for XFS, that one is taken; what it says is told.
	m.Disks = func() []muster.Disk { return nil }
	m.Find = func(p string) (string, error) {
		if p == "mkfs.xfs" {
			return "/sbin/mkfs.xfs", nil
		}
		return "", exec.ErrNotFound
	}
	if k, p, ok := m.kind(); !ok || k.name != "xfs" || p != "/sbin/mkfs.xfs" {
		t.Errorf("%+v %q %v", k, p, ok)
	}
	m.Appear = 300 * time.Millisecond
	if err := m.Make(t.Context(), []wire.CleanDisk{{Serial: "A", Size: 1}}); err == nil {
		t.Error("a disk that does not come is not told")
	}
}

func TestDecodeOrder(t *testing.T) {
	t.Parallel()
	if l, err := DecodeOrder([]byte(`[{"serial":"a","size_bytes":5},{"model":"b","size_bytes":6}]`)); err != nil || len(l) != 2 {
		t.Errorf("%v %v", l, err)
	}
	for _, s := range []string{"", "{}", `[{"size_bytes":5}]`, `[{"serial":"a"}]`, `[]x`, "[" + strings.Repeat(`{"serial":"a","size_bytes":5},`, 600) + `{"serial":"a","size_bytes":5}]`} {
		if _, err := DecodeOrder([]byte(s)); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%.40q: %v", s, err)
		}
	}
	if _, err := ReadOrder(filepath.Join(t.TempDir(), "none")); muster.CodeOf(err) != muster.ENotFound {
		t.Error(err)
	}
}

func FuzzDecodeOrder(f *testing.F) {
	f.Add([]byte(`[{"serial":"a","size_bytes":5}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeOrder(b)
		for _, d := range l {
			if err != nil || d.Size <= 0 {
				t.Fatalf("%+v %v", d, err)
			}
		}
	})
}
