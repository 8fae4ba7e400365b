package lab

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/inventory"
)

func sound() Config {
	return Config{Racks: 2, Net: DefaultNet(), Classes: []Class{
		{Name: "small", Count: 3, Cores: 1, Memory: 1 << 30, Disk: 8 << 30},
		{Name: "big", Count: 1, Cores: 4, Memory: 4 << 30, Disk: 16 << 30},
	}}
}

func TestParseClass(t *testing.T) {
	t.Parallel()
	base := Class{Name: DefaultClass, Cores: 2, Memory: DefaultMemory, Disk: DefaultDisk}
	for text, want := range map[string]Class{
		"4": {DefaultClass, 4, 2, 0, DefaultMemory, DefaultDisk, 0},
		"2,class=big,cores=8,memory=2GiB,disk=1GiB": {"big", 2, 8, 0, 2 << 30, 1 << 30, 0},
		"2,nvme=64MiB":        {DefaultClass, 2, 2, 0, DefaultMemory, DefaultDisk, 64 << 20},
		"1,cores=4,sockets=2": {DefaultClass, 1, 4, 2, DefaultMemory, DefaultDisk, 0},
		"0":                   {DefaultClass, 0, 2, 0, DefaultMemory, DefaultDisk, 0}, // refused by Check, with the rest
	} {
		if got, err := ParseClass(text, base); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, problems := range map[string]int{"": 0, "x": 0, "2,cores=x,memory=much,colour=red": 3, "2,": 1} {
		_, err := ParseClass(text, base)
		var e *muster.Error
		if !errors.As(err, &e) || len(e.Problems) != problems || e.Hint == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseClass(f *testing.F) {
	f.Add("2,class=big,cores=8,memory=2GiB,disk=1GiB")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = ParseClass(text, Class{}) })
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := sound().Check(); err != nil {
		t.Fatal(err)
	}
	bad := Config{Racks: 0, Net: netip.MustParsePrefix("10.0.0.7/30"), Uplink: "Up!", Classes: []Class{
		{Name: "a", Count: 0, Cores: 0, Memory: 1, Disk: 5}, {Name: "a", Count: 500, Cores: 1, Memory: 1 << 30, Disk: 1 << 30}, {Name: "A b", Count: 1, Cores: 1, Memory: 1 << 30, Disk: 1 << 30}}}
	var e *muster.Error
	if err := bad.Check(); !errors.As(err, &e) || len(e.Problems) != 10 {
		t.Fatalf("%v", err)
	}
}

// What is written down of a lab is read again, or refused.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"document":"lab/1","content":{"classes":[{"name":"a","count":1,"cores":1,"memory_bytes":1073741824,"disk_bytes":1073741824}],"racks":1,"net":"10.77.0.0/16"}}`))
	f.Add([]byte(`{"document":"lab/2"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseConfig(b)
		if err == nil {
			err = c.Check()
		}
		if err != nil && muster.CodeOf(err) != muster.ECorrupt && muster.CodeOf(err) != muster.EConflict {
			t.Fatal(err)
		}
	})
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	c := sound()
	if got := c.Server().String(); got != "10.77.0.1/16" {
		t.Error(got)
	}
	if got := c.controller(0).String(); got != "10.77.128.1" {
		t.Error(got)
	}
	c.Net = netip.MustParsePrefix("192.168.4.0/22")
	if got := c.controller(MaxMachines - 1).String(); got != "192.168.6.200" || !c.Net.Contains(c.controller(MaxMachines-1)) {
		t.Error(got)
	}
}

// The same directory gives the same machines; two directories have no address,
// serial number or UUID in common.
func TestPlan(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, dir := range []string{"/var/lib/a", "/var/lib/b", "/var/lib/a"} {
		l, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		list := l.plan(sound())
		if len(list) != 4 || list[3].Class != "big" || list[3].Rack != "lab-2" || list[3].Position != 2 || list[0].Rack != "lab-1" {
			t.Fatalf("%+v", list)
		}
		for _, m := range list {
			for _, id := range []string{m.Serial, m.UUID, m.NICs[0].MAC, m.NICs[1].MAC, l.serverMAC().String()} {
				if owner, ok := seen[id]; ok && owner != dir {
					t.Errorf("%s is in %s and in %s", id, owner, dir)
				}
				seen[id] = dir
			}
		}
	}
	if len(seen) != 2*(4*4+1) {
		t.Errorf("%d identities", len(seen))
	}
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	_, err := Open("/var/tmp/" + strings.Repeat("x", 100))
	if muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), "too long") {
		t.Fatal(err)
	}
}

// Kernels of translated machines, and only theirs, get arguments of their own.
func TestServing(t *testing.T) {
	t.Parallel()
	l, err := Open(t.TempDir())
	if err != nil {
		t.Skip(err) // the test's own directory is too long
	}
	for _, kvm := range []bool{false, true} {
		c := sound()
		c.KVM = kvm
		if err := c.write(l.dir); err != nil {
			t.Fatal(err)
		}
		flags, err := l.Serving()
		if err != nil || len(flags) < 2 || flags[1] != Inside || slices.Contains(flags, "--metal-kernel-args") == kvm {
			t.Errorf("KVM %v: %q, %v", kvm, flags, err)
		}
	}
}

func TestInventory(t *testing.T) {
	t.Parallel()
	l, err := Open(t.TempDir())
	if err != nil {
		t.Skip(err) // the test's own directory is too long
	}
	if err := sound().write(l.dir); err != nil {
		t.Fatal(err)
	}
	list, err := l.Inventory()
	if err != nil || len(list.Machines) != 4 {
		t.Fatalf("%+v, %v", list, err)
	}
	if m := list.Machines[2]; m.Name != "m03" || m.Power != (ItemPower{"ipmi", "10.77.128.3", "muster", l.dir + "/bmc-password"}) || m.NICs[1].Port != "m03-msg" || m.NICs[1].Use != "message" {
		t.Errorf("%+v", m)
	}
	var out bytes.Buffer
	if err := list.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 5 || rows[4][0] != "m04" || len(rows[4]) != 15 {
		t.Errorf("%v, %v", rows, err)
	}
	// What Muster reads is what was written.
	var text, table bytes.Buffer
	if err := json.NewEncoder(&text).Encode(list); err != nil {
		t.Fatal(err)
	}
	if err := list.WriteCSV(&table); err != nil {
		t.Fatal(err)
	}
	a, err := inventory.Decode("lab.yaml", text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	b, err := inventory.Decode("lab.csv", table.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for i := range a { // where each value stood is no part of it
		a[i] = inventory.Entry{Machine: a[i].Machine, Password: a[i].Password, PasswordFile: a[i].PasswordFile, AuthorityFile: a[i].AuthorityFile}
		b[i] = inventory.Entry{Machine: b[i].Machine, Password: b[i].Password, PasswordFile: b[i].PasswordFile, AuthorityFile: b[i].AuthorityFile}
	}
	if !reflect.DeepEqual(a, b) || len(a) != 4 || a[3].Machine.Power.Kind != muster.PowerIPMI || a[3].PasswordFile == "" || a[3].Machine.NICs[1].Switch == "" {
		t.Errorf("read as YAML %+v, as CSV %+v", a, b)
	}
	c := sound()
	c.NoBMC = true
	if err := c.write(l.dir); err != nil {
		t.Fatal(err)
	}
	if list, err = l.Inventory(); err != nil || list.Machines[0].Power != (ItemPower{Kind: "wol"}) {
		t.Errorf("%+v, %v", list, err)
	}
}

// A directory that holds something else is never taken for a lab's, nor emptied.
func TestForeignDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has labs")
	}
	dir := t.TempDir()
	l, err := Open(dir)
	if err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "thesis"), []byte("years"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := sound()
	if err := l.Up(t.Context(), &c, "/bin/false", nil); muster.CodeOf(err) != muster.EConflict && muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("up: %v", err)
	}
	if err := l.Down(t.Context(), nil); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("down: %v", err)
	}
	if err := c.write(dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context(), nil); muster.CodeOf(err) != muster.EConflict || !strings.Contains(err.Error(), "thesis") {
		t.Errorf("down of a lab beside it: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "thesis")); err != nil || string(b) != "years" {
		t.Fatalf("%q, %v", b, err)
	}
}

// A lock of a directory that is taken away meanwhile is none.
func TestLock(t *testing.T) {
	t.Parallel()
	l, err := Open(filepath.Join(t.TempDir(), "l"))
	if err != nil {
		t.Skip(err)
	}
	if _, err := l.lock(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := l.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.lock(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("locked twice: %v", err)
	}
	f.Close()
	if f, err = l.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// What was killed while it wrote its very first file is taken away, and can be made again.
func TestCutShort(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has labs")
	}
	dir := filepath.Join(t.TempDir(), "l")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir)
	if err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "."+configFile+".123.new"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("it is left:", err)
	}
}
