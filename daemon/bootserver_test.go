package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// get asks for a file as anybody on the network can; change may spoil the request.
func (r *bootRig) get(path, key string, change func(*http.Request)) (int, http.Header, []byte) {
	r.t.Helper()
	c := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: r.srv.authority.Pool()}, DisableKeepAlives: true,
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+wire.BootFilePath+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if key != "" {
		q.Header.Set("Authorization", "Bearer "+key)
	}
	if change != nil {
		change(q)
	}
	a, err := c.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return a.StatusCode, a.Header, b
}

// An image is given to the boot whose order names it, over TLS 1.3, while that boot lasts;
// every other question is answered alike, and is no sign of life of the machine.
func TestImageOfABoot(t *testing.T) {
	t.Parallel()
	r := newBootRig(t)
	one, two := r.boot("m-1", 1), r.boot("m-2", 1)
	first := r.program(one)
	mine, other := r.order(first, "m-1", nil).Image, r.order(r.program(two), "m-2", nil).Image
	if mine.Key == other.Key || mine.Root.Path == other.Root.Path {
		t.Fatal("two boots have one key")
	}
	if status, h, b := r.get(mine.Root.Path, mine.Key, nil); status != http.StatusOK || !bytes.Equal(b, r.image) || h.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d, %d bytes", status, len(b))
	}
	for text, want := range map[string][]byte{
		"bytes=0-0": r.image[:1], "bytes=4194304-": r.image[4<<20:], "bytes=-11": r.image[len(r.image)-11:], "bytes=7-1000000": r.image[7:1000001],
	} {
		status, _, b := r.get(mine.Root.Path, mine.Key, func(q *http.Request) { q.Header.Set("Range", text) })
		if status != http.StatusPartialContent || !bytes.Equal(b, want) {
			t.Errorf("%s: %d, %d bytes", text, status, len(b))
		}
	}
	if status, _, b := r.get(mine.Root.Path, mine.Key, func(q *http.Request) { q.Header.Set("Range", "bytes=99999999-") }); status != http.StatusRequestedRangeNotSatisfiable || len(b) > 200 {
		t.Errorf("beyond the end: %d, %d bytes", status, len(b))
	}
	if status, _, _ := r.get(mine.Root.Path, mine.Key, func(q *http.Request) { q.Method = http.MethodPut }); status != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", status)
	}

	before := r.m.provider.Heard("m-1")
	digest := rigImage.Hex()
	basic := func(q *http.Request) { q.SetBasicAuth("", mine.Key) }
	_, _, nothing := r.get("x/y", "", nil)
	for name, x := range map[string]struct {
		path, key string
		change    func(*http.Request)
	}{
		"no key":              {mine.Root.Path, "", nil},
		"wrong key":           {mine.Root.Path, strings.Repeat("0", 64), nil},
		"half a key":          {mine.Root.Path, mine.Key[:32], nil},
		"another boot's key":  {mine.Root.Path, other.Key, nil},
		"another boot's path": {other.Root.Path, mine.Key, nil},
		"key in the query":    {mine.Root.Path + "?key=" + mine.Key + "&access_token=" + mine.Key, "", nil},
		"key in the path":     {mine.Root.Path + "/" + mine.Key, "", nil},
		"key as a password":   {mine.Root.Path, "", basic},
		"no image":            {one + "/", mine.Key, nil},
		"another image":       {one + "/" + strings.Repeat("ab", 32), mine.Key, nil},
		"no such boot":        {"b-none/" + digest, mine.Key, nil},
		"more path":           {mine.Root.Path + "/root", mine.Key, nil},
		"way out":             {one + "/%2e%2e/%2e%2e/files.key", mine.Key, nil},
	} {
		status, h, b := r.get(x.path, x.key, x.change)
		if status != http.StatusNotFound || !bytes.Equal(b, nothing) || h.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: %d %q", name, status, b)
		}
	}
	if at := r.m.provider.Heard("m-1"); !at.Equal(before) {
		t.Error("who has no key passes for the machine's first program")
	}
	// Without encryption: the boot service asks, and says when it was the machine itself.
	b, ok := r.m.provider.Directory().Boot(one)
	if at := r.m.provider.Heard("m-1"); !ok || b.Seen == nil || !at.Equal(before) {
		t.Error("who knows the number of a boot passes for its machine")
	}
	b.Seen()
	plain := r.m.provider.Heard("m-1")
	if !plain.After(before) {
		t.Error("a machine that fetches its image without encryption is not heard")
	}
	if r.get(mine.Root.Path, mine.Key, nil); !r.m.provider.Heard("m-1").After(plain) {
		t.Error("a machine that fetches its image is not heard")
	}

	old := &tls.Config{RootCAs: r.srv.authority.Pool(), MaxVersion: tls.VersionTLS12}
	if c, err := tls.Dial("tcp", strings.TrimPrefix(r.url, "https://"), old); err == nil {
		_ = c.Close()
		t.Error("the desk speaks TLS 1.2")
	}
	if resp, err := http.Get("http://" + strings.TrimPrefix(r.url, "https://") + wire.BootFilePath + mine.Root.Path); err == nil {
		if resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %d", resp.StatusCode)
		}
	}

	// The server ends and starts again: who fetches goes on.
	if err := r.m.provider.Close(); err != nil {
		t.Fatal(err)
	}
	r.open()
	if status, _, b := r.get(mine.Root.Path, mine.Key, nil); status != http.StatusOK || len(b) != len(r.image) {
		t.Errorf("after a restart: %d", status)
	}
	if b, ok := r.m.provider.Directory().Boot(one); !ok || b.Root != "" {
		t.Errorf("an image is given without encryption where nobody said so: %+v", b)
	}
	// The machine is given back: its key opens nothing any more, and another boot has another.
	r.ensure(provider.DesiredState{Machine: "m-1", Power: provider.PowerOff})
	if status, _, _ := r.get(mine.Root.Path, mine.Key, nil); status != http.StatusNotFound {
		t.Errorf("the key of a boot that is over: %d", status)
	}
	next := r.boot("m-1", 2)
	if again := r.order(r.program(next), "m-1", nil).Image; again.Key == mine.Key || next == one {
		t.Error("the next boot has the key of the last one")
	}
	if status, _, _ := r.get(mine.Root.Path, mine.Key, nil); status != http.StatusNotFound {
		t.Errorf("the key of a boot that is over, with another under way: %d", status)
	}
}

// One address cannot have all connections, nor many requests over one.
func TestConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	r := newBootRig(t)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.srv.authority.Pool()}, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
	a, err := c.Get(r.url)
	if err != nil || a.ProtoMajor != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	_ = a.Body.Close()
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		return c
	}
	for range bootsOfOne {
		dial()
	}
	last := dial()
	_ = last.SetReadDeadline(time.Now().Add(5 * time.Second)) // one that is served is closed after ten
	if _, err := last.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one more is served: %v", err)
	}
	_ = open[0].Close()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) { // its place is free soon
		if a, err := c.Get(r.url); err == nil {
			_ = a.Body.Close()
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// An order is given to one program of the right machine: over the wire, as an attacker on
// the management network would try it.
func TestOrderOverTheWire(t *testing.T) {
	t.Parallel()
	r := newBootRig(t)
	one, three := r.boot("m-1", 1), r.boot("m-3", 1)
	refused := func(name string, p interface {
		CheckIn(context.Context, wire.BootCheckIn) (*wire.BootReply, error)
	}, h wire.BootCheckIn, code muster.Code) {
		t.Helper()
		if reply, err := p.CheckIn(t.Context(), h); muster.CodeOf(err) != code {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
	}
	refused("another number", r.program("b-0000-none"), hello("m-1", nil), muster.ENotFound)
	refused("another machine's MAC", r.program(one), hello("m-2", nil), muster.EForbidden)
	refused("an address that was lent to nobody", r.program(three), hello("m-3", nil), muster.EForbidden)
	// The right machine asks, twice, because its answer was lost.
	first := r.program(one)
	for range 2 {
		if o := r.order(first, "m-1", nil); o.Bootstrap == nil || o.Bootstrap.Token != rigToken {
			t.Fatalf("%+v", o)
		}
	}
	// Somebody else with its address asks for the same: while the machine is heard it is
	// not even believed that it was started again.
	second := r.program(one)
	for _, alive := range []time.Time{{}, time.Now().Add(time.Minute)} {
		r.mu.Lock()
		r.alive = alive
		r.mu.Unlock()
		reply, err := second.CheckIn(t.Context(), hello("m-1", nil))
		if err != nil || reply.Task != nil || reply.Wait == nil || reply.Wait.Reason == "" {
			t.Errorf("a second program: %+v, %v", reply, err)
		}
	}
	if o := r.order(first, "m-1", nil); o.Bootstrap.Token != rigToken {
		t.Errorf("the first program lost its order: %+v", o)
	}
}

// What the state directory holds of boots is root's alone, and a seed is there no longer
// than its order is good for something.
func TestWhatIsKeptOfBoots(t *testing.T) {
	t.Parallel()
	r := newBootRig(t)
	holds := func() (files []string) {
		t.Helper()
		err := filepath.WalkDir(r.srv.state.path("metal"), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed since the directory was read
			}
			if err != nil {
				return err
			}
			if st.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, st.Mode())
			}
			if e.IsDir() {
				return nil
			}
			b, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if bytes.Contains(b, []byte(rigToken)) {
				files = append(files, filepath.Base(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	one := r.boot("m-1", 1)
	if got := holds(); len(got) != 1 || got[0] != "m-1.json" {
		t.Errorf("the seed is in %v", got)
	}
	p := r.program(one)
	r.order(p, "m-1", nil)
	h := hello("m-1", nil)
	h.Attempt, h.Failure = 1, &wire.BootFailure{Stage: "image", Code: "digest", Text: "x", Final: true}
	if _, err := p.CheckIn(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if got := holds(); len(got) > 0 {
		t.Errorf("after the boot failed the seed is in %v", got)
	}
	r.boot("m-2", 1)
	r.ensure(provider.DesiredState{Machine: "m-2", Power: provider.PowerOff})
	got := holds()
	for end := time.Now().Add(patience); len(got) > 0 && time.Now().Before(end); got = holds() {
		time.Sleep(5 * time.Millisecond) // the machine is switched off beside
	}
	if len(got) > 0 {
		t.Errorf("after the machine was given back the seed is in %v", got)
	}
}

// A machine that boots with a DIMM less than before is a finding: from its hello over the
// wire to the condition and the drain in the store.
func TestLostMemoryIsAFinding(t *testing.T) {
	t.Parallel()
	r := newBootRig(t)
	facts := muster.Facts{
		Architecture: "amd64", Processor: "CPU", Cores: 64, Threads: 128, Memory: 512 << 30,
		DIMMs: []muster.DIMM{{Slot: "A1", Size: 448 << 30}, {Slot: "A3", Size: 64 << 30}},
	}
	boots := func(attempt int64) {
		t.Helper()
		r.order(r.program(r.boot("m-1", attempt)), "m-1", &facts)
	}
	machine := func(ok func(muster.Registration, muster.Machine) bool) {
		t.Helper()
		var reg muster.Registration
		var m muster.Machine
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if err := r.srv.db.View(t.Context(), muster.System(), func(tx *store.Tx) (err error) {
				if reg, err = tx.Registration("m-1"); err == nil {
					m, err = tx.Machine("m-1")
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if ok(reg, m) {
				return
			}
		}
		t.Fatalf("%+v\n%+v", reg, m)
	}
	boots(1)
	machine(func(reg muster.Registration, m muster.Machine) bool {
		return reg.Facts != nil && reg.Facts.Memory == 512<<30 && reg.Trust == muster.TrustNetwork && len(m.Conditions) == 0 && m.Intent == muster.IntentNone
	})
	facts.DIMMs, facts.Memory = facts.DIMMs[:1], 448<<30
	boots(2)
	machine(func(reg muster.Registration, m muster.Machine) bool {
		return len(m.Conditions) == 1 && strings.Contains(m.Conditions[0].Text, "A3") && m.Intent == muster.IntentDrain
	})
}
