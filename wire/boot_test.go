package wire

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

func goodHello() BootCheckIn {
	return BootCheckIn{
		Protocol: 1, Version: "1", Boot: "b1a2-0001", Key: make([]byte, 32), MAC: "52:54:00:00:00:01",
		MACs: []string{"52:54:00:00:00:01", "52:54:00:00:00:02"}, Address: netip.MustParseAddr("10.0.0.5"),
		Facts: &muster.Facts{Architecture: "amd64"}, TPM: &BootTPM{Endorsement: []byte{1}, Attestation: []byte{2}},
		Stages: []BootStage{{"kernel", 0}}, Failure: &BootFailure{Stage: "image", Code: "digest", Text: "no"},
		Done: &BootTaskResult{Kind: BootDiscover},
	}
}

func goodOrder() *BootTask {
	return &BootTask{
		Kind: BootImage, Machine: "m1", Attempt: 1, GiveUp: muster.Duration(1 * time.Second), Hostname: "n01", Bootstrap: &Bootstrap{Token: "secret-token"},
		Image:   &BootFiles{ID: "sha256:aa", Key: "secret-key", Root: BootFile{Path: "m/root.squashfs", Size: 200_000, Piece: 1 << 17, Pieces: [][]byte{make([]byte, 32), make([]byte, 32)}}},
		Links:   []BootLink{{MAC: "52:54:00:00:00:01", Name: "mgmt0", Address: netip.MustParsePrefix("10.0.0.5/24"), Gateway: netip.MustParseAddr("10.0.0.1"), Default: true}},
		Scratch: []CleanDisk{{Serial: "s", Model: "m", Size: 1}},
		Files:   []File{{Path: "/etc/x", Mode: 0o644}}, Masks: []string{"a.service"}, Init: []string{"/sbin/init"},
	}
}

// onDisk is a task of a virtual machine.
func onDisk() *BootTask {
	o := goodOrder()
	o.Image = &BootFiles{ID: "sha256:aa", Root: BootFile{Size: 200_000}, Disk: "root"}
	return o
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What is written is read as it was.
func TestBootRoundTrip(t *testing.T) {
	t.Parallel()
	h := goodHello()
	got, err := DecodeBootCheckIn(encode(t, h))
	if err != nil || !reflect.DeepEqual(*got, h) {
		t.Errorf("%+v: %v", got, err)
	}
	for _, r := range []BootReply{
		{Protocol: 1, Now: time.Unix(1e9, 0).UTC()},
		{Protocol: 1, Wait: &BootWait{Reason: "the rack is busy", Place: 3, ETA: muster.Duration(4 * time.Second), Next: muster.Duration(1 * time.Second)}},
		{Protocol: 1, Challenge: &BootChallenge{Credential: []byte{1}, Secret: []byte{2}}},
		{Protocol: 1, Task: goodOrder()},
		{Protocol: 1, Task: onDisk()},
		{Protocol: 1, Task: &BootTask{Kind: BootOff}},
		{Protocol: 1, Task: &BootTask{Kind: BootTest, Links: []BootLink{{MAC: "52:54:00:00:00:01", Name: "msg0", Speed: 1e9}, {MAC: "52:54:00:00:00:02", Name: "msg0"}}}},
		{Protocol: 1, Task: &BootTask{Kind: BootClean, Clean: &CleanOrder{Disks: []CleanDisk{{Serial: "x", Size: 1}}}}},
	} {
		got, err := DecodeBootReply(encode(t, r))
		if err != nil || !reflect.DeepEqual(*got, r) {
			t.Errorf("%+v: %v", got, err)
		}
	}
}

// Each of these is refused, with the field named.
func TestBootHelloRefuses(t *testing.T) {
	t.Parallel()
	for field, spoil := range map[string]func(*BootCheckIn){
		"protocol":        func(h *BootCheckIn) { h.Protocol = 2 },
		"boot":            func(h *BootCheckIn) { h.Boot = "../../x" },
		"key":             func(h *BootCheckIn) { h.Key = h.Key[1:] },
		"mac":             func(h *BootCheckIn) { h.MAC = "52-54-00-00-00-01" },
		"macs[0]":         func(h *BootCheckIn) { h.MACs[0] = "80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:1b:2c" },
		"macs[1]":         func(h *BootCheckIn) { h.MACs[1] = "00:00:00:00:00:00" },
		"macs":            func(h *BootCheckIn) { h.MACs = make([]string, 300) },
		"address":         func(h *BootCheckIn) { h.Address = netip.Addr{} },
		"version":         func(h *BootCheckIn) { h.Version = "\x1b[2J" },
		"tpm.endorsement": func(h *BootCheckIn) { h.TPM.Endorsement = nil },
		"tpm.attestation": func(h *BootCheckIn) { h.TPM.Attestation = make([]byte, 5000) },
		"stages[0]":       func(h *BootCheckIn) { h.Stages[0].After = -1 },
		"failure":         func(h *BootCheckIn) { h.Failure.Code = "" },
		"progress":        func(h *BootCheckIn) { h.Progress = "a\nb" },
		"failure.text":    func(h *BootCheckIn) { h.Failure.Text = "a\nb" },
		"done.kind":       func(h *BootCheckIn) { h.Done.Kind = BootImage },
		"done.steps[0]":   func(h *BootCheckIn) { h.Done.Steps = []muster.CleanStep{{What: "disk \x1b[2J"}} },
		"attempt":         func(h *BootCheckIn) { h.Attempt = -1 },
	} {
		h := goodHello()
		spoil(&h)
		_, err := DecodeBootCheckIn(encode(t, h))
		if muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, text := range []string{"", "null x", "[]", encodeTwice(t), strings.Repeat(" ", MaxBootCheckIn) + "{}"} {
		if _, err := DecodeBootCheckIn([]byte(text)); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func encodeTwice(t *testing.T) string {
	b := string(encode(t, goodHello()))
	return b + b
}

// A task that a machine must not carry out is refused, and no secret is told.
func TestBootOrderRefuses(t *testing.T) {
	t.Parallel()
	for field, spoil := range map[string]func(*BootTask){
		"task.kind":                 func(o *BootTask) { o.Kind = "format" },
		"task.attempt":              func(o *BootTask) { o.Attempt = 0 },
		"task.hostname":             func(o *BootTask) { o.Hostname = "a b" },
		"task.seed":                 func(o *BootTask) { o.Bootstrap = nil },
		"task.image":                func(o *BootTask) { o.Image = nil },
		"task.image.key":            func(o *BootTask) { o.Image.Key = "secret-token\r\nX: y" },
		"task.image.root.path":      func(o *BootTask) { o.Image.Root.Path = "../etc" },
		"task.image.root.pieces":    func(o *BootTask) { o.Image.Root.Size = 1 << 40 },
		"task.image.root.pieces[1]": func(o *BootTask) { o.Image.Root.Pieces[1] = []byte{1} },
		"task.image.root.pieces[0]": func(o *BootTask) { o.Image.Root.Pieces[0] = o.Image.Root.Pieces[0][:16] },
		"task.image.root":           func(o *BootTask) { o.Image.Root.Piece = 1 },
		"task.image.servers[0]":     func(o *BootTask) { o.Image.Servers = []string{"http://x"} },
		"task.image.disk":           func(o *BootTask) { *o = *onDisk(); o.Image.Disk = "a b" },
		"task.image:":               func(o *BootTask) { *o = *onDisk(); o.Image.Key = "k" },
		"task.links[0].mac":         func(o *BootTask) { o.Links[0].MAC = "x" },
		"task.links[0].name":        func(o *BootTask) { o.Links[0].Name = "../x" },
		"task.links[0].gateway":     func(o *BootTask) { o.Links[0].Gateway = netip.MustParseAddr("fe80::1") },
		"task.links[1]":             func(o *BootTask) { o.Links = append(o.Links, o.Links[0]) },
		"task.files[0]":             func(o *BootTask) { o.Files[0].Path = "/etc/../../x" },
		"task.masks[0]":             func(o *BootTask) { o.Masks[0] = "../x" },
		"task.init":                 func(o *BootTask) { o.Init[0] = "init" },
		"task.give_up_seconds":      func(o *BootTask) { o.GiveUp = 1 << 50 },
		"task.clean":                func(o *BootTask) { o.Kind = BootClean },
		"task.links[0].speed_bps":   func(o *BootTask) { o.Kind, o.Links[0].Speed = BootTest, -1 },
		"task.scratch[0]":           func(o *BootTask) { o.Scratch = []CleanDisk{{Serial: "x"}} },
		"task.clean.disks[0]":       func(o *BootTask) { o.Kind, o.Clean = BootClean, &CleanOrder{Disks: []CleanDisk{{Size: 1}}} },
	} {
		o := goodOrder()
		spoil(o)
		_, err := DecodeBootReply(encode(t, BootReply{Protocol: 1, Task: o}))
		if muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
		if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), field, ""), "secret") {
			t.Errorf("%s: a secret is told: %v", field, err)
		}
	}
	if _, err := DecodeBootReply(encode(t, BootReply{Protocol: 1, Task: goodOrder(), Wait: &BootWait{}})); err == nil {
		t.Error("two things at once are not refused")
	}
}

func FuzzBootHello(f *testing.F) {
	f.Add(encode(f, goodHello()))
	f.Add([]byte(`{"protocol":1,"macs":[""],"tpm":{},"failure":{},"done":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeBootCheckIn(b)
		if err != nil {
			return
		}
		if _, err := DecodeBootCheckIn(encode(t, h)); err != nil {
			t.Fatalf("what was read is not read again: %v", err)
		}
	})
}

func FuzzBootReply(f *testing.F) {
	f.Add(encode(f, BootReply{Protocol: 1, Task: goodOrder()}))
	f.Add(encode(f, BootReply{Protocol: 1, Wait: &BootWait{Reason: "x"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeBootReply(b)
		if err != nil || r.Task == nil {
			return
		}
		if o := r.Task; o.Kind == BootImage && o.Image.Disk == "" {
			p := o.Image.Root
			if int64(len(p.Pieces))*p.Piece < p.Size || int64(len(p.Pieces)-1)*p.Piece >= p.Size || o.Bootstrap == nil {
				t.Fatalf("%+v", p)
			}
		}
	})
}

func TestValidInterface(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][2]bool{
		"52:54:00:12:34:56": {true, true}, "00:02:c9:03:00:0a:1b:2c": {false, true}, "00:02:C9:03:00:0A:1B:2C": {}, "00:00:00:00:00:00:00:00": {},
		"52:54:00:12:34:5x": {}, "52-54-00-12-34-56": {}, "00:02:c9:03:00:0a:1b:2c:": {}, "": {}, "00:00:00:00:00:00": {},
	} {
		if got := [2]bool{ValidMAC(address), ValidInterface(address)}; got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}
