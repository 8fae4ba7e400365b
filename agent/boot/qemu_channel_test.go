package boot_test

import (
	"bufio"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// byChannel boots a virtual machine: its task comes by a serial port, its image is a disk. There is no DHCP, and no server
// is asked.
func (l *lab) byChannel(t *testing.T) {
	s := newSite(t, l, "b-channel-01")
	s.order.Image = &wire.BootFiles{ID: s.order.Image.ID, Root: wire.BootFile{Size: s.order.Image.Root.Size}, Disk: "root"}
	s.order.Bootstrap.CA = "-----BEGIN CERTIFICATE-----\nof the task\n-----END CERTIFICATE-----\n"
	path := filepath.Join(t.TempDir(), "channel")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	asked := make(chan string, 16)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for in := bufio.NewScanner(conn); in.Scan(); {
			if in.Text() != "task" {
				asked <- in.Text()
				continue
			}
			asked <- "task"
			_ = json.NewEncoder(conn).Encode(wire.BootReply{Protocol: 1, Now: time.Now().Add(time.Hour), Task: s.order})
		}
	}()
	m := l.start(t, s, s.ca,
		"-append", "console=ttyS0 quiet panic=-1 no_timer_check muster.channel=ttyS1",
		"-chardev", "socket,id=channel,path="+path, "-serial", "chardev:channel",
		"-drive", "if=none,id=root,format=raw,readonly=on,file="+l.root, "-device", "virtio-blk-pci,drive=root,serial=root")
	var f found
	select {
	case f = <-l.report:
	case <-time.After(5 * time.Minute):
		t.Fatal("the image's init does not report")
	}
	m.prints(t, "root: squashfs with an overlay, one on a disk, the other in memory", time.Minute)
	var seed wire.Bootstrap
	if err := json.Unmarshal([]byte(f.Seed), &seed); err != nil || seed.Token != "a-token" || !strings.Contains(seed.CA, "of the task") {
		t.Errorf("seed %+v: %v", f.Seed, err)
	}
	if f.SeedMode != "-r--------" || f.Hostname != "n01" || f.File != "extra" || !f.Agent || !f.Unit || f.Links["mgmt0"] != "10.0.2.15/24" || f.Links["msg0"] != "10.91.0.7/24" {
		t.Errorf("%+v", f)
	}
	for _, mount := range f.Mounts {
		if strings.Contains(mount, "loop") {
			t.Errorf("mounted: %s", mount)
		}
	}
	if got := <-asked; strings.TrimSpace(got) != "" && got != "task" {
		t.Errorf("it said %q", got)
	}
	if hellos := s.hellos(); len(hellos) > 0 {
		t.Errorf("the server was asked: %+v", hellos)
	}
}
