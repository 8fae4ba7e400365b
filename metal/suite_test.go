package metal_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/providertest"
	"github.com/muster-hpc/muster/wire"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 3)
	providertest.Suite(t, providertest.Subject{
		Open:    func(t *testing.T) provider.Provider { return r.open(t, nil) },
		Image:   testImage,
		NoShell: true,
		Spoil: func(_ *testing.T, _ provider.Provider, id muster.MachineID) func() {
			set := func(bad bool) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.machines[id].bad = bad
			}
			set(true)
			return func() { set(false) }
		},
		Die: func(t *testing.T, _ provider.Provider, id muster.MachineID) {
			r.runs(t, id)
			_ = r.machines[id].Off(t.Context())
		},
	})
}

func want(r *racked, id muster.MachineID, attempt int64) provider.DesiredState {
	b := &provider.Boot{Attempt: attempt, Cluster: "c-1", Hostname: "n01", Image: testImage}
	b.Bootstrap.Token = "the-token"
	return provider.DesiredState{Machine: id, Power: provider.PowerBoot, Boot: b}
}

func ensure(t *testing.T, p *metal.Provider, w provider.DesiredState) {
	t.Helper()
	if errs := p.Ensure(t.Context(), []provider.DesiredState{w}); errs != nil {
		t.Fatal(errs)
	}
}

// eventually waits until a machine is seen so.
func eventually(t *testing.T, p *metal.Provider, id muster.MachineID, ok func(provider.Observation) bool) provider.Observation {
	t.Helper()
	var seen []provider.Observation
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if seen, _ = p.Observe(t.Context(), []muster.MachineID{id}); len(seen) == 1 && ok(seen[0]) {
			return seen[0]
		}
	}
	t.Fatalf("%+v", seen)
	return provider.Observation{}
}

// What a machine that becomes a node is told: its image with the digest of every piece,
// its interfaces, its seed with how far it is trusted.
func TestTold(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 1)
	p := r.open(t, nil)
	defer p.Close()
	ensure(t, p, want(r, "n0000", 3))
	r.runs(t, "n0000")
	r.mu.Lock()
	o := r.orders["n0000"][0]
	r.mu.Unlock()
	if o.Image.Root.Size != 9<<20+17 || len(o.Image.Root.Pieces) != 3 || o.Image.Key == "" || o.Bootstrap.Token != "the-token" ||
		o.Bootstrap.Trust != muster.TrustNetwork || o.Bootstrap.Attempt != 3 || o.Hostname != "n01" || len(o.Links) != 1 || o.Links[0].Name != "mgmt0" ||
		o.Links[0].Address.Bits() != 16 {
		t.Errorf("%+v %+v", o, o.Links)
	}
}

// A machine is attached to its cluster's network with all interfaces for messages that it
// has, of InfiniBand, too; each has a subnet of its own.
func TestAllMessageInterfaces(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 1)
	r.regs[0].NICs = append(r.regs[0].NICs, muster.RegisteredNIC{MAC: "00:02:c9:03:00:0a:1b:2c", Use: muster.UseMessage})
	r.machines["n0000"].reg.NICs = r.regs[0].NICs
	p := r.open(t, nil)
	defer p.Close()
	n := provider.Network{Cluster: "c-1", Index: 7}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{n}); err != nil {
		t.Fatal(err)
	}
	w := want(r, "n0000", 1)
	w.Boot.Message = &provider.Attachment{Network: n, Address: netip.MustParsePrefix("10.128.112.10/20")}
	ensure(t, p, w)
	r.runs(t, "n0000")
	r.mu.Lock()
	o := r.orders["n0000"][0]
	r.mu.Unlock()
	var got []string
	for _, l := range o.Links[1:] {
		got = append(got, l.Name+" "+l.MAC+" "+l.Address.String())
	}
	if want := []string{"msg0 52:54:00:01:00:00 10.128.112.10/20", "msg1 00:02:c9:03:00:0a:1b:2c fd6d:7573:7401:7::a80:700a/64"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	b, err := json.Marshal(&wire.BootReply{Protocol: wire.BootProtocol, Task: o})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.DecodeBootReply(b); err != nil {
		t.Errorf("its first program refuses the task: %v", err)
	}
}

// A test has the controller switch the machine off while it runs, and fails where that
// does not do what it says.
func TestTestOfOff(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 2)
	p := r.open(t, nil)
	defer p.Close()
	r.machines["n0001"].stuck = true
	for id, good := range map[muster.MachineID]bool{"n0000": true, "n0001": false} {
		rec, err := p.Test(t.Context(), id, 1)
		if err != nil || rec.Passed != good || len(rec.Steps) != 2 {
			t.Fatalf("%s: %+v, %v", id, rec, err)
		}
		if last := rec.Steps[1]; last.What != "power" || last.OK != good || !strings.Contains(last.Check, " says o") {
			t.Errorf("%s: %+v", id, last)
		}
	}
}

// A controller that lies when it is to switch on, or lets nobody in, fails the test.
func TestTestOfController(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 2)
	p := r.open(t, nil)
	defer p.Close()
	r.mu.Lock()
	r.machines["n0000"].dead, r.machines["n0001"].lock = true, true
	r.mu.Unlock()
	for id, says := range map[muster.MachineID]string{"n0000": "still says", "n0001": "the password is wrong"} {
		rec, err := p.Test(t.Context(), id, 1)
		if err != nil || rec.Passed || len(rec.Steps) != 1 {
			t.Fatalf("%s: %+v, %v", id, rec, err)
		}
		if s := rec.Steps[0]; s.What != "power" || s.OK || !strings.Contains(s.Check, says) {
			t.Errorf("%s: %+v", id, s)
		}
	}
}

// What lost memory stays of its class, until somebody accepts what it is now.
func TestClassStays(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 2)
	whole := *r.regs[0].Facts
	less := whole
	less.Memory /= 2
	r.regs[1].Facts, r.regs[1].Accepted = &less, &whole
	p := r.open(t, nil)
	defer p.Close()
	list, err := p.Discover(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	if a, b := list[0].Facts, list[1].Facts; a.Class == "" || a.Class != b.Class || b.Memory != less.Memory && a.Memory != less.Memory {
		t.Errorf("%+v and %+v", a, b)
	}
}

// Who does not show the TPM that was enrolled gets no seed, unless its registration
// does without.
func TestSilentTPM(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 2)
	for i := range r.regs {
		r.regs[i].EndorsementKey = []byte{1}
	}
	r.regs[1].MinTrust = muster.TrustNetwork
	p := r.open(t, nil)
	defer p.Close()
	ensure(t, p, want(r, "n0000", 1))
	ensure(t, p, want(r, "n0001", 1))
	r.runs(t, "n0001")
	var err error
	for end := time.Now().Add(2 * time.Minute); err == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.mu.Lock()
		err = r.machines["n0000"].last
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if muster.CodeOf(err) != muster.EForbidden || len(r.orders["n0000"]) > 0 {
		t.Errorf("%v, %d orders", err, len(r.orders["n0000"]))
	}
}

// A node that is started again by its user is told from one that somebody pretends to
// be, and gets its next order without being switched off.
func TestStartedAgain(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 1)
	alive := time.Now()
	p := r.open(t, func(o *metal.Options) {
		o.Alive = func(muster.MachineID) time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return alive
		}
		o.Clock = hurried{alive}
	})
	defer p.Close()
	ensure(t, p, want(r, "n0000", 3))
	r.runs(t, "n0000")
	r.mu.Lock()
	alive = time.Now().Add(time.Hour)
	r.mu.Unlock()
	r.machines["n0000"].reset()
	time.Sleep(50 * time.Millisecond)
	if seen := eventually(t, p, "n0000", func(provider.Observation) bool { return true }); seen.State != provider.StateRunning || seen.Attempt != 3 {
		t.Errorf("its agent is heard, and somebody else is believed: %+v", seen)
	}
	r.mu.Lock()
	alive = time.Time{}
	r.mu.Unlock()
	eventually(t, p, "n0000", func(s provider.Observation) bool { return s.State == provider.StateStuck && s.Err != nil })
	ensure(t, p, want(r, "n0000", 4))
	if got := r.runs(t, "n0000"); got != 4 {
		t.Errorf("it runs attempt %d", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.orders["n0000"]); n != 2 {
		t.Errorf("%d orders", n)
	}
}

// hurried is a clock on which a second is ten milliseconds; what it tells is late by
// hours soon, as is good for what compares times with each other.
type hurried struct{ since time.Time }

func (h hurried) Now() time.Time { return h.since.Add(100 * time.Since(h.since)) }

func (hurried) After(d time.Duration) <-chan time.Time { return time.After(d / 100) }

// A machine that never told what it is is asked, and is no machine of the site before.
func TestDiscovered(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 2)
	r.regs[1].Facts = nil
	p := r.open(t, nil)
	defer p.Close()
	if list, err := p.Discover(t.Context()); err != nil || len(list) != 1 || list[0].Facts.Class != "epyc-7543-32-8c-16g" {
		t.Errorf("%+v, %v", list, err)
	}
	// Until it did, and is off, nobody is told of it.
	for over, end := false, time.After(2*time.Minute); !over; {
		select {
		case id := <-p.Changes():
			over = id == "n0001"
		case <-time.After(20 * time.Millisecond):
			p.Registered() // as the server says when somebody told something
		case <-end:
			t.Fatal("nobody is told of the new machine")
		}
	}
	if list, err := p.Discover(t.Context()); err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	eventually(t, p, "n0001", func(s provider.Observation) bool { return s.State == provider.StateOff })
}

// A machine is erased once after somebody had it, and again only when somebody had it.
func TestCleanOnce(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 1)
	p := r.open(t, nil)
	defer p.Close()
	erased := func() (n int) {
		if _, err := p.Clean(t.Context(), "n0000"); err != nil {
			t.Fatal(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, o := range r.orders["n0000"] {
			if o.Kind == wire.BootClean {
				n++
				if len(o.Clean.Disks) != 1 || o.Clean.Disks[0].Serial != "Dn0000" {
					t.Errorf("%+v", o.Clean)
				}
			}
		}
		return n
	}
	counts := []int{erased(), erased()}
	ensure(t, p, want(r, "n0000", 1))
	r.runs(t, "n0000")
	if _, err := p.Clean(t.Context(), "n0000"); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("a machine in use: %v", err)
	}
	ensure(t, p, provider.DesiredState{Machine: "n0000", Power: provider.PowerOff})
	eventually(t, p, "n0000", func(s provider.Observation) bool { return s.State == provider.StateOff })
	counts = append(counts, erased(), erased())
	if !slices.Equal(counts, []int{1, 1, 2, 2}) {
		t.Errorf("erased %v times", counts)
	}
}

// What a machine does for a server that ended in the middle of it is nobody's: it is seen to
// run, so that it is switched off, and then cleaned or tested as if nothing had been.
func TestWorkOfAServerThatEnded(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 2)
	p := r.open(t, nil)
	kinds := map[muster.MachineID]wire.BootKind{"n0000": wire.BootClean, "n0001": wire.BootTest}
	mute := func(is bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.machines["n0000"].mute, r.machines["n0001"].mute = is, is
	}
	mute(true) // it is in its firmware still
	for id, kind := range kinds {
		o := wire.BootTask{Kind: kind, Machine: id, Attempt: 7}
		if kind == wire.BootClean {
			o.Clean = &wire.CleanOrder{Disks: []wire.CleanDisk{{Serial: "D" + string(id), Size: 1 << 30}}}
		} else {
			o.Stay = muster.Duration(2 * time.Second)
		}
		payload, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Boots().Start(t.Context(), id, metal.Task{Kind: kind, Attempt: 7, For: "site", Payload: payload}); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(2 * time.Minute); p.Boots().States(id)[0].Step != metal.StepBooting; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%+v", p.Boots().States(id))
			}
		}
	}
	p.Close()

	p = r.open(t, nil)
	defer p.Close()
	for id := range kinds {
		eventually(t, p, id, func(s provider.Observation) bool { return s.State == provider.StateRunning })
		ensure(t, p, provider.DesiredState{Machine: id, Power: provider.PowerOff})
		eventually(t, p, id, func(s provider.Observation) bool { return s.State == provider.StateOff })
	}
	mute(false)
	for id, kind := range kinds {
		if rec, err := p.Test(t.Context(), id, 1); kind == wire.BootTest && (err != nil || !rec.Passed) {
			t.Errorf("test: %+v, %v", rec, err)
		}
		if rec, err := p.Clean(t.Context(), id); err != nil || !rec.Verified {
			t.Errorf("clean: %+v, %v", rec, err)
		}
	}
}

// A controller that says yes and does nothing proves nothing.
func TestFenceNotProven(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 1)
	p := r.open(t, nil)
	defer p.Close()
	ensure(t, p, want(r, "n0000", 1))
	r.runs(t, "n0000")
	r.mu.Lock()
	r.machines["n0000"].stuck = true
	r.mu.Unlock()
	rec, err := p.Fence(t.Context(), "n0000")
	if err == nil || rec.Proven || len(rec.Steps) == 0 {
		t.Errorf("%+v, %v", rec, err)
	}
	r.mu.Lock()
	r.machines["n0000"].stuck = false
	r.mu.Unlock()
	if rec, err := p.Fence(t.Context(), "n0000"); err != nil || !rec.Proven {
		t.Errorf("%+v, %v", rec, err)
	}
}

// Whoever orders a boot of a machine while it is cut off is told so, and nothing of the
// order is left.
func TestNoBootInAFence(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 1)
	p := r.open(t, nil)
	defer p.Close()
	ensure(t, p, want(r, "n0000", 1))
	r.runs(t, "n0000")
	slow := make(chan struct{})
	r.mu.Lock()
	r.machines["n0000"].slow = slow
	r.mu.Unlock()
	fenced := make(chan error, 1)
	go func() {
		rec, err := p.Fence(t.Context(), "n0000")
		if err == nil && !rec.Proven {
			err = fmt.Errorf("not proven: %+v", rec)
		}
		fenced <- err
	}()
	<-slow
	r.mu.Lock()
	r.machines["n0000"].slow = nil
	r.mu.Unlock()
	errs := p.Ensure(t.Context(), []provider.DesiredState{want(r, "n0000", 2)})
	if len(errs) != 1 || muster.CodeOf(errs[0]) != muster.EConflict {
		t.Errorf("a boot while it is fenced: %v", errs)
	}
	slow <- struct{}{}
	if err := <-fenced; err != nil {
		t.Error(err)
	}
	if seen := eventually(t, p, "n0000", func(provider.Observation) bool { return true }); seen.State != provider.StateOff {
		t.Errorf("it is %+v", seen)
	}
	ensure(t, p, want(r, "n0000", 2))
	r.runs(t, "n0000")
}

// The way out is for machines whose cluster asked for it, while they have it.
func TestProxied(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 2)
	p := r.open(t, nil)
	defer p.Close()
	n := provider.Network{Cluster: "c-1", Egress: muster.EgressProxy}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{n}); err != nil {
		t.Fatal(err)
	}
	with, without := want(r, "n0000", 1), want(r, "n0001", 1)
	with.Boot.Message = &provider.Attachment{Network: n, Address: netip.MustParsePrefix("10.9.0.1/24")}
	ensure(t, p, with)
	ensure(t, p, without)
	r.runs(t, "n0000")
	r.runs(t, "n0001")
	mac := func(i int) string { return r.regs[i].NICs[0].MAC }
	for m, want := range map[string]muster.Egress{mac(0): muster.EgressProxy, mac(1): muster.EgressNone, "52:54:00:ff:ff:ff": ""} {
		if cluster, egress := p.Boots().Runs(m); egress != want || (cluster != "") != (want != "") {
			t.Errorf("%s runs for %q with egress %q, not %q", m, cluster, egress, want)
		}
	}
	ensure(t, p, provider.DesiredState{Machine: "n0000", Power: provider.PowerOff})
	if cluster, egress := p.Boots().Runs(mac(0)); cluster != "" || egress != "" {
		t.Error("a machine that is given back still has the way out")
	}
}

// A console says when there is nothing to tell. It goes on with the boot that it was opened
// in, and ends with it: the next one may be another user's. It ends with its reader, too.
func TestConsoleFollows(t *testing.T) {
	t.Parallel()
	r := newRacked(t, 1)
	p := r.open(t, nil)
	defer p.Close()
	open := func() io.ReadWriteCloser {
		t.Helper()
		c, err := p.Console(t.Context(), "n0000", false)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	rest := func(c io.Reader) string {
		t.Helper()
		b, err := io.ReadAll(c)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if text := rest(open()); !strings.Contains(text, "nothing is known of a boot of n0000") {
		t.Errorf("%q", text)
	}
	ensure(t, p, want(r, "n0000", 3))
	c := open()
	lines := bufio.NewScanner(c)
	for !strings.Contains(lines.Text(), "step: running") {
		if !lines.Scan() {
			t.Fatal("it ended before the machine ran", lines.Err())
		}
	}
	other := open()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	rest(other)
	ensure(t, p, provider.DesiredState{Machine: "n0000", Power: provider.PowerOff})
	ensure(t, p, want(r, "n0000", 4))
	for lines.Scan() {
		if strings.Contains(lines.Text(), "attempt 4") {
			t.Fatalf("who read the last boot reads the next: %s", lines.Text())
		}
	}
}
