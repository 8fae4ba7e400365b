package boot_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// disk makes a file full of data that a machine has as a disk.
func disk(t *testing.T, size int64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "disk")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := bytes.Repeat([]byte("somebody's data."), 1<<16)
	for at := int64(0); at < size; at += int64(len(b)) {
		if _, err := f.WriteAt(b[:min(int64(len(b)), size-at)], at); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// nvme are QEMU's arguments for a disk.
func nvme(file, serial string) []string {
	return []string{"-drive", "file=" + file + ",if=none,format=raw,discard=unmap,id=" + serial, "-device", "nvme,drive=" + serial + ",serial=" + serial}
}

// zeroes reports whether every byte of a file is zero.
func zeroes(t *testing.T, name string) bool {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, zero := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, err := f.Read(b)
		if !bytes.Equal(b[:n], zero[:n]) {
			return false
		}
		if err == io.EOF {
			return true
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// works waits until a machine has told that its order is done, and is off.
func (m *machine) works(t *testing.T, s *site, within time.Duration) *wire.BootTaskResult {
	t.Helper()
	select {
	case <-m.over:
	case <-time.After(within):
		t.Fatalf("the machine is not off after %v", within)
	}
	for _, h := range s.hellos() {
		if h.Done != nil {
			t.Logf("%+v", *h.Done)
			return h.Done
		}
	}
	t.Fatal("the server did not hear that the task is done")
	return nil
}

// ordered makes a site whose order is not a boot.
func (l *lab) ordered(t *testing.T, number string, o *wire.BootTask) *site {
	t.Helper()
	s := newSite(t, l, number)
	o.Machine, o.Attempt, o.GiveUp = "m1", 5, muster.Duration(time.Minute)
	s.boot.Kind, s.order = o.Kind, o
	return s
}

const nvmeModel = "QEMU NVMe Ctrl"

// cleans: of a machine's disks those that are named are zeroes afterwards, to the last
// byte, and the one that is not keeps what it has.
func (l *lab) cleans(t *testing.T) {
	large, small, spared := disk(t, 192<<20), disk(t, 5<<20+512), disk(t, 8<<20)
	s := l.ordered(t, "b-cleans-001", &wire.BootTask{Kind: wire.BootClean, Clean: &wire.CleanOrder{Disks: []wire.CleanDisk{
		{Serial: "LARGE1", Model: nvmeModel, Size: 192 << 20}, {Serial: "SMALL1", Size: 5<<20 + 512}, {Serial: "SPARED", Size: 9 << 20},
	}}})
	var args []string
	for file, serial := range map[string]string{spared: "SPARED", large: "LARGE1", small: "SMALL1"} {
		args = append(args, nvme(file, serial)...)
	}
	m := l.start(t, s, s.ca, args...)
	done := m.works(t, s, 8*time.Minute)
	if done.Kind != wire.BootClean || done.Passed || len(done.Steps) != 3 || done.Took <= 0 {
		t.Errorf("%+v", done)
	} else if done.Steps[2].OK || !done.Steps[0].OK || !done.Steps[1].OK {
		t.Errorf("%+v", done.Steps)
	}
	if !zeroes(t, large) || !zeroes(t, small) {
		t.Error("data is left on a disk that was to be cleaned")
	}
	if b, err := os.ReadFile(spared); err != nil || !bytes.Equal(b, bytes.Repeat([]byte("somebody's data."), 8<<16)) {
		t.Errorf("a disk of another size than the task says was touched: %v", err)
	}
}

// sata and scsi are QEMU's arguments for disks of other kinds: one with SMART, one without.
func sata(file, serial string) []string {
	return []string{"-device", "ich9-ahci,id=ahci", "-drive", "file=" + file + ",if=none,format=raw,id=" + serial, "-device", "ide-hd,bus=ahci.0,drive=" + serial + ",serial=" + serial}
}

func scsi(file, serial string) []string {
	return []string{"-device", "virtio-scsi-pci,id=scsi", "-drive", "file=" + file + ",if=none,format=raw,id=" + serial, "-device", "scsi-hd,bus=scsi.0,drive=" + serial + ",serial=" + serial}
}

// tests: a machine whose parts are well passes, and its disks keep their data. They are
// asked how they are: that one cannot tell is nothing against it, and that the kernel
// counts the question as a failed command neither.
func (l *lab) tests(t *testing.T) {
	data := []string{disk(t, 8<<20), disk(t, 8<<20), disk(t, 8<<20)}
	s := l.ordered(t, "b-tests-0001", &wire.BootTask{Kind: wire.BootTest, Links: []wire.BootLink{{MAC: testMAC, Name: "mgmt0"}, {MAC: testMAC2, Name: "msg0"}}})
	m := l.start(t, s, s.ca, slices.Concat(nvme(data[0], "DATA01"), sata(data[1], "DATA02"), scsi(data[2], "DATA03"), []string{"-smp", "2"})...)
	done := m.works(t, s, 8*time.Minute)
	if done.Kind != wire.BootTest || !done.Passed || len(done.Steps) != 8 {
		t.Errorf("%+v", done)
	}
	const tried, well = "nothing written", "; it says of itself that it is well"
	for _, step := range done.Steps {
		told := strings.Contains(step.Check, tried+well)
		switch {
		case strings.HasPrefix(step.What, "disk DATA03 "):
			if told || !strings.HasSuffix(step.Check, tried) {
				t.Errorf("a disk without SMART: %+v", step)
			}
		case strings.HasPrefix(step.What, "disk ") && !told:
			t.Errorf("a disk with SMART: %+v", step)
		}
	}
	// Commands that failed of two disks, what NVMe and SATA count themselves, two cards.
	if c := done.Steps[len(done.Steps)-1].Check; !strings.HasPrefix(c, "none of 6 counters ") {
		t.Errorf("errors counted: %s", c)
	}
	for _, name := range data {
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, bytes.Repeat([]byte("somebody's data."), 8<<16)) {
			t.Errorf("a test wrote to a disk: %v", err)
		}
	}
}

// fails: a machine with a disk that can be read and says of itself that it fails does
// not pass. One that is only warm is well.
func (l *lab) fails(t *testing.T) {
	s := l.ordered(t, "b-fails-0001", &wire.BootTask{Kind: wire.BootTest})
	failing, warm := nvme(disk(t, 8<<20), "FAILING"), nvme(disk(t, 8<<20), "WARM")
	failing[3] += ",smart_critical_warning=12"
	warm[3] += ",smart_critical_warning=2"
	m := l.start(t, s, s.ca, append(failing, warm...)...)
	done := m.works(t, s, 8*time.Minute)
	says := map[bool]string{}
	for _, step := range done.Steps {
		if strings.HasPrefix(step.What, "disk ") {
			says[step.OK] = step.What + ": " + step.Check
		}
	}
	if done.Passed || !strings.HasPrefix(says[false], "disk FAILING (nvme") || !strings.HasSuffix(says[false], "FAILED: it says of itself: it is not reliable any more after errors of its media; its media can only be read") ||
		!strings.HasPrefix(says[true], "disk WARM (nvme") || !strings.Contains(says[true], "it says of itself that it is well") {
		t.Errorf("%+v", done)
	}
}

// scratch: a node has a file system on the disk that its order names, and on no other.
func (l *lab) scratch(t *testing.T) {
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Skip("needs mkfs.ext4: install e2fsprogs")
	}
	dir := t.TempDir()
	with := &lab{kernel: l.kernel, initrd: l.initrd, root: filepath.Join(dir, "root.squashfs"), report: l.report, reportPort: l.reportPort, filler: 4096}
	tree := filepath.Join(dir, "image")
	place(t, tree, mkfs)
	for _, name := range libraries(t, mkfs) {
		place(t, tree, name)
	}
	with.image(t, tree)
	own, other := disk(t, 64<<20), disk(t, 8<<20)
	s := newSite(t, with, "b-scratch-01")
	s.order.Scratch = []wire.CleanDisk{{Serial: "OWN", Model: nvmeModel, Size: 64 << 20}}
	m := with.start(t, s, s.ca, append(nvme(other, "OTHER"), nvme(own, "OWN")...)...)
	var f found
	select {
	case f = <-l.report:
	case <-time.After(6 * time.Minute):
		t.Fatal("the image's init does not report")
	}
	<-m.over
	var at []string
	for _, line := range f.Mounts {
		if w := strings.Fields(line); len(w) > 3 && strings.HasPrefix(w[1], "/scratch") {
			at = append(at, line)
		}
	}
	if len(at) != 1 || !strings.Contains(at[0], " /scratch ext4 ") || !strings.Contains(at[0], "nosuid,nodev") || !strings.HasPrefix(f.Scratch, "scratch: disk OWN (nvme") || !strings.HasSuffix(strings.TrimSpace(f.Scratch), ": ext4 at /scratch") {
		t.Errorf("%v: %s", at, f.Scratch)
	}
	if b, err := os.ReadFile(other); err != nil || !bytes.Equal(b, bytes.Repeat([]byte("somebody's data."), 8<<16)) {
		t.Errorf("a disk that the task does not name was touched: %v", err)
	}
}

// libraries are the files that a program needs.
func libraries(t *testing.T, program string) []string {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Skipf("what %s needs is not known: %v", program, err)
	}
	var files []string
	for _, w := range strings.Fields(string(out)) {
		if strings.HasPrefix(w, "/") {
			files = append(files, w)
		}
	}
	return files
}

// place copies a file of this computer to the same place in a tree.
func place(t *testing.T, tree, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(tree, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
}
