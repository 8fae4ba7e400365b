package boot_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// hibernates has a machine write its memory to its disk, where nobody can read it. The next boot goes on from there and hears
// who it is; the one after that finds nothing, and says so.
func (l *lab) hibernates(t *testing.T) {
	if os.Getenv("MUSTER_HIBERNATE") == "" {
		t.Skip("takes two minutes: make test-lab-hibernate, or MUSTER_HIBERNATE=1")
	}
	const size, keep = 2 << 30, 900 << 20
	dir := t.TempDir()
	with := &lab{kernel: l.kernel, initrd: l.initrd, root: filepath.Join(dir, "root.squashfs"), report: l.report, reportPort: l.reportPort, filler: 4096}
	tree := filepath.Join(dir, "image")
	area := wire.MemoryArea{Disk: wire.CleanDisk{Serial: "OWN", Size: size, Keep: keep}, Key: bytes.Repeat([]byte{1, 2, 3, 4}, wire.MemoryKeySize/4)}
	b, err := json.Marshal(area)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(tree, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "etc/hibernate.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	with.image(t, tree)
	disk := filepath.Join(dir, "disk")
	f, err := os.Create(disk)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	off := func(m *machine) {
		t.Helper()
		select {
		case <-m.over:
		case <-time.After(6 * time.Minute):
			t.Fatal("the machine is not off")
		}
	}
	drive := []string{"-drive", "if=none,id=own,format=raw,file=" + disk, "-device", "virtio-blk-pci,drive=own,serial=OWN"}
	s := newSite(t, with, "b-hibernate1")
	s.order.Scratch = []wire.CleanDisk{area.Disk}
	m := with.start(t, s, s.ca, drive...)
	m.prints(t, "hibernating now", 6*time.Minute)
	off(m)
	held, err := os.ReadFile(disk)
	if err != nil || bytes.Contains(held, []byte("of a tenantof a tenant")) || bytes.Contains(held, []byte("S1SUSPEND")) {
		t.Fatalf("what it wrote can be read: %v", err)
	}
	held = nil
	goOn := func(number string, attempt int64) (*site, *machine) {
		s := newSite(t, with, number)
		s.order.Attempt, s.order.Image, s.order.Memory, s.order.Bootstrap.Token = attempt, nil, &area, "another-token"
		return s, with.start(t, s, s.ca, drive...)
	}
	_, m = goOn("b-hibernate2", 4)
	select {
	case f := <-l.report:
		if f.Memory != "same memory true, boot 4 of m1, token another-token, end <nil>" {
			t.Errorf("it says %q", f.Memory)
		}
	case <-time.After(6 * time.Minute):
		t.Fatal("the machine does not go on")
	}
	off(m)
	s, m = goOn("b-hibernate3", 5)
	m.prints(t, "memory: FAILED: no memory is on the disk", 6*time.Minute)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		said := ""
		for _, h := range s.hellos() {
			if h.Failure != nil && h.Failure.Final {
				said = h.Failure.Stage + " " + h.Failure.Code + " " + h.Failure.Text
			}
		}
		if strings.HasPrefix(said, "memory memory no memory is on the disk") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server heard %q", said)
		}
	}
}
