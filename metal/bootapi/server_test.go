package bootapi

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// fakeRegistry is a Book in memory with one boot.
type fakeRegistry struct {
	mu    sync.Mutex
	boot  Boot
	order *wire.BootTask
	heard []*wire.BootCheckIn
	trust muster.Trust
	asked int      // times a task was made
	again int      // times it was started again
	told  []string // refusals that an administrator sees
	err   error
}

func (b *fakeRegistry) Boot(_ context.Context, n string) (Boot, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return Boot{}, b.err
	}
	if n != b.boot.Number {
		return Boot{}, muster.Errorf(muster.ENotFound, "none")
	}
	return b.boot, nil
}

func (b *fakeRegistry) Bind(_ context.Context, _ string, key []byte, trust muster.Trust) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.boot.Key == nil {
		b.boot.Key, b.trust = key, trust
	}
	return b.boot.Key, nil
}

func (b *fakeRegistry) Restarted(context.Context, string, *wire.BootCheckIn) (*wire.BootWait, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.again++
	return nil, nil
}

func (b *fakeRegistry) Task(context.Context, string, *wire.BootCheckIn) (*wire.BootTask, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	return b.order, nil
}

func (b *fakeRegistry) Refused(_ context.Context, _ string, why error) {
	b.told = append(b.told, why.Error())
}

func (b *fakeRegistry) Heard(_ context.Context, _ string, h *wire.BootCheckIn, _ muster.Trust) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = append(b.heard, h)
	return nil
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time                         { return c.now }
func (c *clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func address() netip.Addr { return netip.MustParseAddr("10.0.0.5") }

func rig(t *testing.T) (*fakeRegistry, *Server, *clock) {
	t.Helper()
	sum := make([]byte, 32)
	b := &fakeRegistry{
		boot: Boot{
			Number: "b-0000-0001", Machine: "m1", Kind: wire.BootImage, MACs: []string{"52:54:00:00:00:01"}, Address: address(),
			Serial: "S1", UUID: "4c4c4544-0000-1000-8000-000000000001",
		},
		order: &wire.BootTask{
			Kind: wire.BootImage, Machine: "m1", Attempt: 1, Hostname: "n01", Bootstrap: &wire.Bootstrap{Token: "t"},
			Image: &wire.BootFiles{Key: "k", Root: wire.BootFile{Path: "r", Size: 1, Piece: 1 << 20, Pieces: [][]byte{sum}}},
		},
	}
	c := &clock{time.Unix(1e9, 0)}
	d, err := New(Config{Registry: b, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	return b, d, c
}

func hello() *wire.BootCheckIn {
	return &wire.BootCheckIn{
		Protocol: 1, Boot: "b-0000-0001", Key: bytes.Repeat([]byte{1}, 32), MAC: "52:54:00:00:00:01", Address: address(),
		Serial: "S1", UUID: "4C4C4544-0000-1000-8000-000000000001",
	}
}

// The same program gets the order as often as it asks; nobody else does.
func TestOrderOnce(t *testing.T) {
	t.Parallel()
	b, d, _ := rig(t)
	for range 2 {
		r, err := d.CheckIn(t.Context(), hello(), address())
		if err != nil || r.Task == nil || r.Task.Attempt != 1 {
			t.Fatalf("%+v: %v", r, err)
		}
	}
	if b.trust != muster.TrustNetwork {
		t.Errorf("trust %q", b.trust)
	}
	h := hello()
	h.Key = bytes.Repeat([]byte{2}, 32)
	asked := b.asked
	if r, err := d.CheckIn(t.Context(), h, address()); err != nil || r.Task != nil || b.again != 1 {
		t.Errorf("a second program: %+v, %v", r, err)
	}
	if b.asked != asked {
		t.Error("a task was made for a second program")
	}
}

// Two programs that ask at the same moment: one gets the order.
func TestOrderRace(t *testing.T) {
	t.Parallel()
	_, d, _ := rig(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	orders := map[byte]bool{}
	for i := range byte(8) {
		all.Go(func() {
			h := hello()
			h.Key = bytes.Repeat([]byte{i}, 32)
			if r, err := d.CheckIn(t.Context(), h, address()); err == nil && r.Task != nil {
				mu.Lock()
				orders[i] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(orders) != 1 {
		t.Errorf("%d programs got the task", len(orders))
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*fakeRegistry, *wire.BootCheckIn, *clock)
		from  string
		code  muster.Code
		why   muster.Reason
		names string
	}{
		"unknown":       {func(_ *fakeRegistry, h *wire.BootCheckIn, _ *clock) { h.Boot = "b-0000-0002" }, "", muster.ENotFound, muster.ReasonNoSuchBoot, ""},
		"wrong MAC":     {func(_ *fakeRegistry, h *wire.BootCheckIn, _ *clock) { h.MAC = "52:54:00:00:00:09" }, "", muster.EForbidden, muster.ReasonOtherMachine, "52:54:00:00:00:09"},
		"wrong address": {nil, "10.0.0.6", muster.EForbidden, muster.ReasonOtherMachine, "10.0.0.6"},
		"wrong serial":  {func(_ *fakeRegistry, h *wire.BootCheckIn, _ *clock) { h.Serial = "S2" }, "", muster.EForbidden, muster.ReasonOtherMachine, "S2"},
		"wrong UUID":    {func(_ *fakeRegistry, h *wire.BootCheckIn, _ *clock) { h.UUID = "x" }, "", muster.EForbidden, muster.ReasonOtherMachine, `"x"`},
		"second asker": {func(b *fakeRegistry, _ *wire.BootCheckIn, _ *clock) {
			b.boot.Key, b.boot.Trust = make([]byte, 32), muster.TrustTPM
		}, "", muster.EConflict, muster.ReasonGivenAlready, ""},
		"expired":       {func(b *fakeRegistry, _ *wire.BootCheckIn, c *clock) { b.boot.Expires = c.now.Add(-1) }, "", muster.EConflict, muster.ReasonAttemptOver, ""},
		"trust":         {func(b *fakeRegistry, _ *wire.BootCheckIn, _ *clock) { b.boot.Least = muster.TrustPort }, "", muster.EForbidden, muster.ReasonUntrustedMachine, "port"},
		"strange trust": {func(b *fakeRegistry, _ *wire.BootCheckIn, _ *clock) { b.boot.Least = "absolute" }, "", muster.EForbidden, muster.ReasonUntrustedMachine, "absolute"},
		"another TPM": {func(b *fakeRegistry, h *wire.BootCheckIn, _ *clock) {
			b.boot.Endorsement, h.TPM = []byte{1}, &wire.BootTPM{Endorsement: []byte{2}, Attestation: []byte{3}}
		}, "", muster.EForbidden, muster.ReasonOtherMachine, "TPM"},
		"no TPM": {func(b *fakeRegistry, _ *wire.BootCheckIn, _ *clock) {
			b.boot.Endorsement, b.boot.Least = []byte{1}, muster.TrustTPM
		}, "", muster.EForbidden, muster.ReasonUntrustedMachine, "tpm"},
		"broken order": {func(b *fakeRegistry, _ *wire.BootCheckIn, _ *clock) { b.order.Bootstrap = nil }, "", muster.EInternal, muster.ReasonInternal, ""},
		"order changed": {func(b *fakeRegistry, _ *wire.BootCheckIn, _ *clock) {
			b.boot.Kind, b.boot.Least = wire.BootDiscover, muster.TrustTPM
		}, "", muster.EConflict, muster.ReasonChangedMeanwhile, ""},
	} {
		b, d, c2 := rig(t)
		h, from := hello(), address()
		if c.spoil != nil {
			c.spoil(b, h, c2)
		}
		if c.from != "" {
			from = netip.MustParseAddr(c.from)
		}
		r, err := d.CheckIn(t.Context(), h, from)
		if muster.CodeOf(err) != c.code || muster.ReasonOf(err) != c.why || !strings.Contains(err.Error(), c.names) || (r != nil && r.Task != nil) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		// Whoever looks at the machine's boot sees why it was refused; not what others,
		// from elsewhere, were told.
		shown := slices.Contains([]string{"wrong serial", "wrong UUID", "trust", "strange trust", "another TPM", "no TPM", "expired"}, name)
		if shown != (len(b.told) == 1) || shown && !strings.Contains(b.told[0], c.names) {
			t.Errorf("%s: shown to an administrator: %q", name, b.told)
		}
		if name != "broken order" && name != "order changed" && b.asked > 0 {
			t.Errorf("%s: a task was made", name)
		}
	}
}

// A serial number is what people copied of it, in another case and with other blanks; a
// placeholder tells no machine from another. A refusal quotes both numbers.
func TestSerialsAreCompared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		approved, told string
		taken          bool
	}{
		{"labdef4ccb425", "LABDEF4CCB425", true}, {" AB  CD", "AB CD", true}, {"Default string", "S9", true}, {"S1", "To Be Filled By O.E.M.", true}, {"S1", "S2", false},
	} {
		b, d, _ := rig(t)
		b.boot.Serial = c.approved
		h := hello()
		h.Serial = c.told
		_, err := d.CheckIn(t.Context(), h, address())
		if (err == nil) != c.taken || err != nil && (!strings.Contains(err.Error(), c.approved) || !strings.Contains(err.Error(), c.told)) {
			t.Errorf("%q and %q: %v", c.approved, c.told, err)
		}
	}
}

// A machine that is started again is noted, waits, and gets nothing of the order that
// another program has.
func TestStartedAgain(t *testing.T) {
	t.Parallel()
	b, d, _ := rig(t)
	b.boot.Key, b.boot.Trust = make([]byte, 32), muster.TrustNetwork
	r, err := d.CheckIn(t.Context(), hello(), address())
	if err != nil || r.Task != nil || r.Wait == nil || r.Wait.Next == 0 || b.again != 1 || b.asked != 0 || len(b.heard) != 0 {
		t.Errorf("%+v, %v: again %d, orders %d, heard %d", r, err, b.again, b.asked, len(b.heard))
	}
}

// What a machine shows of its TPM is told, also when it is refused for it; what comes
// from elsewhere is not.
func TestShown(t *testing.T) {
	t.Parallel()
	b, d, _ := rig(t)
	var shown []byte
	d.c.Shown = func(id muster.MachineID, key []byte) { shown = append([]byte(id), key...) }
	b.boot.Endorsement = []byte{1}
	h := hello()
	h.TPM = &wire.BootTPM{Endorsement: []byte{2}, Attestation: []byte{3}}
	if _, err := d.CheckIn(t.Context(), h, netip.MustParseAddr("10.9.9.9")); err == nil || shown != nil {
		t.Errorf("%v, %q", err, shown)
	}
	if _, err := d.CheckIn(t.Context(), h, address()); muster.CodeOf(err) != muster.EForbidden || string(shown) != "m1\x02" {
		t.Errorf("%v, %q", err, shown)
	}
}

func TestTrust(t *testing.T) {
	t.Parallel()
	b, d, _ := rig(t)
	b.boot.Port, b.boot.Least = true, muster.TrustPort
	if r, err := d.CheckIn(t.Context(), hello(), address()); err != nil || r.Task == nil || b.trust != muster.TrustPort {
		t.Errorf("%+v, %q: %v", r, b.trust, err)
	}
	// What brings no seed needs no trust.
	b, d, _ = rig(t)
	b.boot.Least, b.boot.Kind, b.order = muster.TrustTPM, wire.BootDiscover, &wire.BootTask{Kind: wire.BootDiscover}
	if r, err := d.CheckIn(t.Context(), hello(), address()); err != nil || r.Task == nil {
		t.Errorf("%+v: %v", r, err)
	}
}

// Who has to wait hears why and gets nothing; what failed or is done is noted.
func TestWaitFailureDone(t *testing.T) {
	t.Parallel()
	b, d, _ := rig(t)
	b.boot.Wait = &wire.BootWait{Reason: "the rack starts", Place: 2}
	r, err := d.CheckIn(t.Context(), hello(), address())
	if err != nil || r.Wait == nil || r.Wait.Place != 2 || r.Task != nil || b.boot.Key != nil {
		t.Errorf("%+v: %v", r, err)
	}
	b.boot.Wait = nil
	h := hello()
	h.Failure = &wire.BootFailure{Stage: "image", Code: "digest", Text: "x"}
	if r, err = d.CheckIn(t.Context(), h, address()); err != nil || r.Task != nil || b.asked != 0 {
		t.Errorf("%+v: %v", r, err)
	}
	h = hello()
	h.Done = &wire.BootTaskResult{Kind: wire.BootDiscover}
	if r, err = d.CheckIn(t.Context(), h, address()); err != nil || r.Task == nil || r.Task.Kind != wire.BootOff || b.asked != 0 {
		t.Errorf("%+v: %v", r, err)
	}
	if len(b.heard) != 3 {
		t.Errorf("%d hellos were noted", len(b.heard))
	}
}

// post sends a check-in as a machine does; spoil may change body and proof.
func post(t *testing.T, s *httptest.Server, h *wire.BootCheckIn, key ed25519.PrivateKey, spoil func(body []byte, proof string) ([]byte, string)) (int, string) {
	t.Helper()
	body, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", s.Listener.Addr().String(), s.Client().Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	state := c.ConnectionState()
	exported, err := state.ExportKeyingMaterial(wire.BootExporter, nil, 32)
	if err != nil {
		t.Fatal(err)
	}
	proof := base64.StdEncoding.EncodeToString(ed25519.Sign(key, wire.BootProofText(exported, sha256.Sum256(body))))
	if spoil != nil {
		body, proof = spoil(body, proof)
	}
	client := &http.Client{Transport: &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+wire.BootPath, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(wire.BootProofHeader, proof)
	r, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestHandler(t *testing.T) {
	t.Parallel()
	b, d, c := rig(t)
	s := httptest.NewTLSServer(d.Handler())
	defer s.Close()
	b.boot.Address = netip.MustParseAddr("127.0.0.1")
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := hello()
	h.Key = pub
	status, text := post(t, s, h, key, nil)
	r, err := wire.DecodeBootReply([]byte(text))
	if status != http.StatusOK || err != nil || r.Task == nil {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	var said string // a proof of an earlier connection
	for name, x := range map[string]struct {
		spoil  func([]byte, string) ([]byte, string)
		status int
	}{
		"no proof":   {func(b []byte, _ string) ([]byte, string) { return b, "" }, http.StatusUnauthorized},
		"other body": {func(b []byte, p string) ([]byte, string) { return append(b, ' '), p }, http.StatusUnauthorized},
		"no JSON":    {func([]byte, string) ([]byte, string) { return []byte("x"), "" }, http.StatusBadRequest},
		"too long":   {func([]byte, string) ([]byte, string) { return make([]byte, wire.MaxBootCheckIn+1), "" }, http.StatusBadRequest},
		"replayed":   {func(b []byte, p string) ([]byte, string) { said = p; return b, p }, http.StatusOK},
		"not this key": {func(b []byte, p string) ([]byte, string) {
			return b, base64.StdEncoding.EncodeToString(make([]byte, 64))
		}, http.StatusUnauthorized},
	} {
		if status, text := post(t, s, h, key, x.spoil); status != x.status {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _ := post(t, s, h, key, func(b []byte, _ string) ([]byte, string) { return b, said }); status != http.StatusUnauthorized {
		t.Errorf("a proof of another connection: %d", status)
	}
	if resp, err := s.Client().Get(s.URL); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%v %v", resp, err)
	}
	// The server's own troubles are not told.
	b.err = io.ErrUnexpectedEOF
	if status, text := post(t, s, h, key, nil); status != http.StatusServiceUnavailable || strings.Contains(text, "EOF") {
		t.Errorf("%d %s", status, text)
	}
	last := 0
	for range 40 {
		if last, _ = post(t, s, h, key, nil); last == http.StatusTooManyRequests {
			break
		}
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("one address may ask as often as it likes: %d", last)
	}
	c.now = c.now.Add(time.Minute)
	b.err = nil
	if status, text := post(t, s, h, key, nil); status != http.StatusOK {
		t.Errorf("after a minute: %d %s", status, text)
	}
	// Without TLS there is nothing that a proof could be bound to.
	plain := httptest.NewServer(d.Handler())
	defer plain.Close()
	body, _ := json.Marshal(h)
	if resp, err := http.Post(plain.URL, "", bytes.NewReader(body)); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v %v", resp, err)
	}
}
