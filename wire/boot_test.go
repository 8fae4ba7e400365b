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

func goodHello() BootHello {
	return BootHello{
		Protocol: 1, Version: "1", Boot: "b1a2-0001", Key: make([]byte, 32), MAC: "52:54:00:00:00:01",
		MACs: []string{"52:54:00:00:00:01", "52:54:00:00:00:02"}, Address: netip.MustParseAddr("10.0.0.5"),
		Facts: &muster.Facts{Architecture: "amd64"}, TPM: &BootTPM{Endorsement: []byte{1}, Attestation: []byte{2}},
		Stages: []BootStage{{"kernel", 0}}, Failure: &BootFailure{Stage: "image", Code: "digest", Text: "no"},
		Done: &BootDone{Kind: BootDiscover},
	}
}

func goodOrder() *BootOrder {
	return &BootOrder{
		Kind: BootImage, Machine: "m1", Attempt: 1, GiveUpMS: 1000, Hostname: "n01", Seed: &Seed{Token: "secret-token"},
		Image:   &BootFiles{ID: "sha256:aa", Key: "secret-key", Root: BootFile{Path: "m/root.squashfs", Size: 200_000, Piece: 1 << 17, Pieces: [][]byte{make([]byte, 32), make([]byte, 32)}}},
		Links:   []BootLink{{MAC: "52:54:00:00:00:01", Name: "mgmt0", Address: netip.MustParsePrefix("10.0.0.5/24"), Gateway: netip.MustParseAddr("10.0.0.1"), Default: true}},
		Scratch: []CleanDisk{{Serial: "s", Model: "m", Size: 1}},
		Files:   []File{{Path: "/etc/x", Mode: 0o644}}, Masks: []string{"a.service"}, Init: []string{"/sbin/init"},
	}
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
	got, err := DecodeBootHello(encode(t, h))
	if err != nil || !reflect.DeepEqual(*got, h) {
		t.Errorf("%+v: %v", got, err)
	}
	for _, r := range []BootReply{
		{Protocol: 1, Now: time.Unix(1e9, 0).UTC()},
		{Protocol: 1, Wait: &BootWait{Reason: "the rack is busy", Place: 3, ETAMS: 4000, NextMS: 1000}},
		{Protocol: 1, Challenge: &BootChallenge{Credential: []byte{1}, Secret: []byte{2}}},
		{Protocol: 1, Order: goodOrder()},
		{Protocol: 1, Order: &BootOrder{Kind: BootOff}},
		{Protocol: 1, Order: &BootOrder{Kind: BootTest, Links: []BootLink{{MAC: "52:54:00:00:00:01", Name: "msg0", Speed: 1e9}, {MAC: "52:54:00:00:00:02", Name: "msg0"}}}},
		{Protocol: 1, Order: &BootOrder{Kind: BootClean, Clean: &CleanOrder{Disks: []CleanDisk{{Serial: "x", Size: 1}}}}},
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
	for field, spoil := range map[string]func(*BootHello){
		"protocol":        func(h *BootHello) { h.Protocol = 2 },
		"boot":            func(h *BootHello) { h.Boot = "../../x" },
		"key":             func(h *BootHello) { h.Key = h.Key[1:] },
		"mac":             func(h *BootHello) { h.MAC = "52-54-00-00-00-01" },
		"macs[1]":         func(h *BootHello) { h.MACs[1] = "00:00:00:00:00:00" },
		"macs":            func(h *BootHello) { h.MACs = make([]string, 300) },
		"address":         func(h *BootHello) { h.Address = netip.Addr{} },
		"version":         func(h *BootHello) { h.Version = "\x1b[2J" },
		"tpm.endorsement": func(h *BootHello) { h.TPM.Endorsement = nil },
		"tpm.attestation": func(h *BootHello) { h.TPM.Attestation = make([]byte, 5000) },
		"stages[0]":       func(h *BootHello) { h.Stages[0].AfterMS = -1 },
		"failure":         func(h *BootHello) { h.Failure.Code = "" },
		"progress":        func(h *BootHello) { h.Progress = "a\nb" },
		"failure.text":    func(h *BootHello) { h.Failure.Text = "a\nb" },
		"done.kind":       func(h *BootHello) { h.Done.Kind = BootImage },
		"done.steps[0]":   func(h *BootHello) { h.Done.Steps = []muster.CleanStep{{What: "disk \x1b[2J"}} },
		"attempt":         func(h *BootHello) { h.Attempt = -1 },
	} {
		h := goodHello()
		spoil(&h)
		_, err := DecodeBootHello(encode(t, h))
		if muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, text := range []string{"", "null x", "[]", encodeTwice(t), strings.Repeat(" ", MaxBootHello) + "{}"} {
		if _, err := DecodeBootHello([]byte(text)); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func encodeTwice(t *testing.T) string {
	b := string(encode(t, goodHello()))
	return b + b
}

// An order that a machine must not carry out is refused, and no secret is told.
func TestBootOrderRefuses(t *testing.T) {
	t.Parallel()
	for field, spoil := range map[string]func(*BootOrder){
		"order.kind":                 func(o *BootOrder) { o.Kind = "format" },
		"order.attempt":              func(o *BootOrder) { o.Attempt = 0 },
		"order.hostname":             func(o *BootOrder) { o.Hostname = "a b" },
		"order.seed":                 func(o *BootOrder) { o.Seed = nil },
		"order.image":                func(o *BootOrder) { o.Image = nil },
		"order.image.key":            func(o *BootOrder) { o.Image.Key = "secret-token\r\nX: y" },
		"order.image.root.path":      func(o *BootOrder) { o.Image.Root.Path = "../etc" },
		"order.image.root.pieces":    func(o *BootOrder) { o.Image.Root.Size = 1 << 40 },
		"order.image.root.pieces[1]": func(o *BootOrder) { o.Image.Root.Pieces[1] = []byte{1} },
		"order.image.root.pieces[0]": func(o *BootOrder) { o.Image.Root.Pieces[0] = o.Image.Root.Pieces[0][:16] },
		"order.image.root":           func(o *BootOrder) { o.Image.Root.Piece = 1 },
		"order.image.servers[0]":     func(o *BootOrder) { o.Image.Servers = []string{"http://x"} },
		"order.links[0].mac":         func(o *BootOrder) { o.Links[0].MAC = "x" },
		"order.links[0].name":        func(o *BootOrder) { o.Links[0].Name = "../x" },
		"order.links[0].gateway":     func(o *BootOrder) { o.Links[0].Gateway = netip.MustParseAddr("fe80::1") },
		"order.links[1]":             func(o *BootOrder) { o.Links = append(o.Links, o.Links[0]) },
		"order.files[0]":             func(o *BootOrder) { o.Files[0].Path = "/etc/../../x" },
		"order.masks[0]":             func(o *BootOrder) { o.Masks[0] = "../x" },
		"order.init":                 func(o *BootOrder) { o.Init[0] = "init" },
		"order.give_up_ms":           func(o *BootOrder) { o.GiveUpMS = 1 << 50 },
		"order.clean":                func(o *BootOrder) { o.Kind = BootClean },
		"order.links[0].speed":       func(o *BootOrder) { o.Kind, o.Links[0].Speed = BootTest, -1 },
		"order.scratch[0]":           func(o *BootOrder) { o.Scratch = []CleanDisk{{Serial: "x"}} },
		"order.clean.disks[0]":       func(o *BootOrder) { o.Kind, o.Clean = BootClean, &CleanOrder{Disks: []CleanDisk{{Size: 1}}} },
	} {
		o := goodOrder()
		spoil(o)
		_, err := DecodeBootReply(encode(t, BootReply{Protocol: 1, Order: o}))
		if muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
		if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), field, ""), "secret") {
			t.Errorf("%s: a secret is told: %v", field, err)
		}
	}
	if _, err := DecodeBootReply(encode(t, BootReply{Protocol: 1, Order: goodOrder(), Wait: &BootWait{}})); err == nil {
		t.Error("two things at once are not refused")
	}
}

func FuzzBootHello(f *testing.F) {
	f.Add(encode(f, goodHello()))
	f.Add([]byte(`{"protocol":1,"macs":[""],"tpm":{},"failure":{},"done":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeBootHello(b)
		if err != nil {
			return
		}
		if _, err := DecodeBootHello(encode(t, h)); err != nil {
			t.Fatalf("what was read is not read again: %v", err)
		}
	})
}

func FuzzBootReply(f *testing.F) {
	f.Add(encode(f, BootReply{Protocol: 1, Order: goodOrder()}))
	f.Add(encode(f, BootReply{Protocol: 1, Wait: &BootWait{Reason: "x"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeBootReply(b)
		if err != nil || r.Order == nil {
			return
		}
		if o := r.Order; o.Kind == BootImage {
			p := o.Image.Root
			if int64(len(p.Pieces))*p.Piece < p.Size || int64(len(p.Pieces)-1)*p.Piece >= p.Size || o.Seed == nil {
				t.Fatalf("%+v", p)
			}
		}
	})
}
