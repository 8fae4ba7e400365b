package wipe

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// loop shows a new file full of data as a disk.
func loop(t *testing.T, size int64) (dev, file string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes loop devices")
	}
	file = filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, bytes.Repeat([]byte{0xa5}, int(size)), 0o600); err != nil {
		t.Fatal(err)
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no loop devices: %v", err)
	}
	defer control.Close()
	back, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	// Another program may take the number in between: it is asked for again.
	for range 50 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Fatal(err)
		}
		dev = fmt.Sprintf("/dev/loop%d", n)
		f, err := os.OpenFile(dev, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if err = unix.IoctlLoopConfigure(int(f.Fd()), &unix.LoopConfig{Fd: uint32(back.Fd())}); err == nil {
			t.Cleanup(func() {
				_ = unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0)
				_ = f.Close()
			})
			return dev, file
		}
		_ = f.Close()
	}
	t.Fatal("no free loop device")
	return "", ""
}

// Real devices: the disks that are named become zeroes to the last byte, the one that
// is not keeps what it has.
func TestCleanDevices(t *testing.T) {
	t.Parallel()
	sizes := []int64{24 << 20, 3<<20 + 512, 24 << 20}
	var have []muster.Disk
	var files []string
	paths := map[string]string{}
	for i, size := range sizes {
		dev, file := loop(t, size)
		d := muster.Disk{Name: filepath.Base(dev), Serial: fmt.Sprint("S", i), Size: size}
		have, files, paths[d.Name] = append(have, d), append(files, file), dev
	}
	c := Cleaner{
		Disks: func() []muster.Disk { return have }, Say: t.Logf, Clock: muster.SystemClock{},
		Open: func(d muster.Disk) (Device, error) { return OpenWrite(Path(d), d.Size) },
	}
	steps, err := c.Run(t.Context(), &wire.CleanOrder{Disks: []wire.CleanDisk{{Serial: "S0", Size: sizes[0]}, {Serial: "S1", Size: sizes[1]}}})
	if err != nil || len(steps) != 3 {
		t.Fatalf("%+v %v", steps, err)
	}
	for i, s := range steps {
		b, err := os.ReadFile(files[i])
		if err != nil || !s.OK {
			t.Fatalf("%+v %v", s, err)
		}
		if want := byte(0xa5) * byte(i/2); bytes.Count(b, []byte{want}) != len(b) || int64(len(b)) != sizes[i] {
			t.Errorf("disk %d is not all %#x", i, want)
		}
	}
	if _, err := OpenWrite(paths[have[2].Name], 25<<20); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("a disk of another size is opened: %v", err)
	}
	// Reading tries, and cannot write.
	b, err := OpenRead(paths[have[2].Name])
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if r, err := Try(t.Context(), b, b.Size(), 32, muster.SystemClock{}, time.Minute); err != nil || r.Places != 34 {
		t.Errorf("%+v %v", r, err)
	}
	if b.Zero(0, 4096) == nil {
		t.Error("what was opened for reading is written")
	}
	if _, err := Prove(t.Context(), b, b.Size()); muster.CodeOf(err) != muster.ECorrupt {
		t.Errorf("data is taken for zeroes: %v", err)
	}
}

// What somebody uses, or is no disk, is not opened for writing.
func TestOpenWriteRefuses(t *testing.T) {
	t.Parallel()
	dev, file := loop(t, 1<<20)
	held, err := OpenWrite(dev, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenWrite(dev, 1<<20); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("a disk in use is opened: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, "/dev/null", filepath.Dir(file)} {
		if _, err := OpenWrite(path, 1<<20); err == nil {
			t.Errorf("%s is opened as a disk", path)
		}
	}
}

// A write-protected disk that was so when the machine was registered is no fault and is
// left alone; one that became so may hide what a tenant wrote; one that is no longer
// protected is erased as any other.
func TestWriteProtected(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	dev, file := loop(t, size)
	f, err := os.OpenFile(dev, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	protect := func(on int) {
		if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.BLKROSET, on); err != nil {
			t.Fatal(err)
		}
	}
	defer protect(0) // it outlives the device
	disk := muster.Disk{Name: filepath.Base(dev), Serial: "RO1", Size: size}
	run := func(before bool) muster.CleanStep {
		t.Helper()
		c := Cleaner{Say: t.Logf, Clock: muster.SystemClock{},
			Disks: func() []muster.Disk {
				now := disk
				b, err := os.ReadFile("/sys/block/" + disk.Name + "/ro")
				now.ReadOnly = err == nil && strings.TrimSpace(string(b)) == "1"
				return []muster.Disk{now}
			},
			Open: func(d muster.Disk) (Device, error) { return OpenWrite(Path(d), d.Size) }}
		steps, err := c.Run(t.Context(), &wire.CleanOrder{Disks: []wire.CleanDisk{{Serial: "RO1", Size: size, ReadOnly: before}}})
		if err != nil || len(steps) != 1 {
			t.Fatalf("%+v, %v", steps, err)
		}
		return steps[0]
	}
	dirty := func() bool {
		b, err := os.ReadFile(file)
		return err != nil || bytes.Contains(b, []byte{0xa5})
	}
	protect(1)
	if s := run(true); !s.OK || !strings.Contains(s.Check, "write-protected") || !dirty() {
		t.Errorf("protected from the beginning: %+v", s)
	}
	if s := run(false); s.OK || !strings.Contains(s.Check, "write-protected") {
		t.Errorf("protected since: %+v", s)
	}
	protect(0)
	_ = f.Close()
	if s := run(true); !s.OK || dirty() {
		t.Errorf("not protected any more: %+v, its data stay: %v", s, dirty())
	}
	if f, err = os.OpenFile(dev, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
}
