package boot

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent/units"
	"github.com/muster-hpc/muster/wire"
)

// What makes a root this node is put there, and no link of the image leads out.
func TestFill(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	const wants = "usr/lib/systemd/system/sysinit.target.wants"
	for _, d := range []string{"etc/systemd/system", "usr/lib", wants} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	victim := filepath.Join(outside, "victim")
	if err := os.WriteFile(victim, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"etc/hostname": victim, "out": outside, wants + "/sys-kernel-config.mount": "../sys-kernel-config.mount", wants + "/kept.mount": "../kept.mount"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	o := &wire.BootTask{Hostname: "n01", Masks: []string{"own.service"}, Files: []wire.File{{Path: "/etc/a/b", Mode: 0o640, Content: "c"}}}
	for range 2 { // and again
		if err := fill(root, o, strings.NewReader("agent")); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"etc/hostname": "n01\n", "etc/a/b": "c", units.Agent: "agent", "usr/lib/systemd/system/muster-agent.service": whole().Files()["usr/lib/systemd/system/muster-agent.service"]} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if list, err := os.ReadDir(filepath.Join(dir, wants)); err != nil || len(list) != 1 || list[0].Name() != "kept.mount" {
		t.Errorf("units that are started at once: %v, %v", list, err)
	}
	// Disks are named only where the order does: not by the image, nor by a try before.
	list := filepath.Join(dir, units.ScratchOrder)
	o.Scratch = []wire.CleanDisk{{Serial: "S", Size: 5}}
	if err := fill(root, o, strings.NewReader("agent")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(list); err != nil || string(b) != `[{"serial":"S","size_bytes":5}]` {
		t.Errorf("%s %v", b, err)
	}
	o.Scratch = nil
	if err := fill(root, o, strings.NewReader("agent")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(list); err == nil {
		t.Error("disks are named that the task does not name")
	}
	if s, err := os.Stat(filepath.Join(dir, "etc/a/b")); err != nil || s.Mode() != 0o640 {
		t.Errorf("%v %v", s, err)
	}
	for name, want := range map[string]string{"own.service": "/dev/null", "systemd-networkd.service": "/dev/null", "../system-generators/systemd-gpt-auto-generator": "/dev/null", "default.target": "/usr/lib/systemd/system/muster.target"} {
		if to, err := os.Readlink(filepath.Join(dir, "etc/systemd/system", name)); err != nil || to != want {
			t.Errorf("%s: %q %v", name, to, err)
		}
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "old" {
		t.Errorf("a link of the image led out: %q %v", b, err)
	}
	o.Files = []wire.File{{Path: "/out/new", Mode: 0o600, Content: "x"}}
	if err := fill(root, o, strings.NewReader("agent")); err == nil {
		t.Error("a file was written through a link that leads out")
	}
	if _, err := os.Stat(filepath.Join(outside, "new")); err == nil {
		t.Error("it is there")
	}
	o.Files = []wire.File{{Path: "/etc/x", Owner: "alice"}}
	if err := fill(root, o, strings.NewReader("agent")); err == nil {
		t.Error("a file of somebody who does not exist yet")
	}
}

// Seed and stages are left for the service, for root alone.
func TestLeave(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "muster")
	st := []wire.BootStage{{Name: StageKernel}, {Name: StageSwitch, After: muster.Duration(1500 * time.Millisecond)}}
	for range 2 {
		if err := leave(dir, &wire.Bootstrap{Token: "t", Server: "https://x"}, st); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := os.Stat(dir); err != nil || s.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", s, err)
	}
	for _, name := range []string{bootstrapFile, StageFile} {
		if s, err := os.Stat(filepath.Join(dir, name)); err != nil || s.Mode().Perm() != 0o400 {
			t.Errorf("%v %v", s, err)
		}
	}
	got := Timed(dir)
	if len(got) != 2 || got[0].Name != StageKernel || got[1].At.Sub(got[0].At) != 1500*time.Millisecond {
		t.Errorf("%+v", got)
	}
	if d := time.Since(got[0].At) - uptime(); d < -time.Minute || d > time.Minute {
		t.Errorf("the kernel began at %v", got[0].At)
	}
	if Timed(t.TempDir()) != nil {
		t.Error("stages of nothing")
	}
}

func FuzzStages(f *testing.F) {
	b, _ := json.Marshal([]wire.BootStage{{Name: "a", After: muster.Duration(1 * time.Millisecond)}})
	f.Add(string(b))
	f.Fuzz(func(t *testing.T, s string) {
		began := time.Unix(1e9, 0)
		for _, x := range readStages(strings.NewReader(s), began) {
			if x.Name == "" || x.At.Before(began) || x.At.After(began.Add(25*time.Hour)) {
				t.Fatalf("%+v", x)
			}
		}
	})
}

func TestLease(t *testing.T) {
	t.Parallel()
	ack := func(more ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
		d, err := dhcpv4.New(append([]dhcpv4.Modifier{
			dhcpv4.WithYourIP(net.IPv4(10, 0, 0, 5)), dhcpv4.WithNetmask(net.CIDRMask(24, 32)),
		}, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	l, err := readLease(ack(dhcpv4.WithRouter(net.IPv4(10, 0, 0, 1)), dhcpv4.WithLeaseTime(3600), dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, []byte{0x23, 0x28})))
	if err != nil || l.Address.String() != "10.0.0.5/24" || l.Gateway.String() != "10.0.0.1" || l.MTU != 9000 || l.Renew != 30*time.Minute {
		t.Errorf("%+v %v", l, err)
	}
	if l, err = readLease(ack(dhcpv4.WithLeaseTime(1), dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, []byte{0, 68}))); err != nil || l.Gateway.IsValid() || l.MTU != 0 || l.Renew != 30*time.Second {
		t.Errorf("%+v %v", l, err)
	}
	for name, m := range map[string]dhcpv4.Modifier{
		"no address": dhcpv4.WithYourIP(net.IPv4zero), "multicast": dhcpv4.WithYourIP(net.IPv4(224, 0, 0, 1)),
		"mask": dhcpv4.WithNetmask(net.IPMask{255, 0, 255, 0}), "no mask": dhcpv4.WithoutOption(dhcpv4.OptionSubnetMask),
	} {
		if l, err := readLease(ack(m)); err == nil && l.Address.IsValid() {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func FuzzLease(f *testing.F) {
	d, _ := dhcpv4.New(dhcpv4.WithYourIP(net.IPv4(10, 0, 0, 5)), dhcpv4.WithNetmask(net.CIDRMask(24, 32)))
	f.Add(d.ToBytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := dhcpv4.FromBytes(b)
		if err != nil {
			return
		}
		if l, err := readLease(d); err == nil && (!l.Address.IsValid() || !l.Address.Addr().Is4() || l.Renew <= 0) {
			t.Fatalf("%+v", l)
		}
	})
}
