package boot

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

const mac1, mac2 = "52:54:00:00:00:01", "52:54:00:00:00:02"

// greeter is a server that answers by a script; the last answer is repeated.
type greeter struct {
	mu     sync.Mutex
	script []func(h wire.BootCheckIn) (*wire.BootReply, error)
	heard  []wire.BootCheckIn
}

func (g *greeter) Key() []byte { return []byte("key") }

func (g *greeter) CheckIn(_ context.Context, h wire.BootCheckIn) (*wire.BootReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.TPM != nil { // the caller goes on with it
		shown := *h.TPM
		h.TPM = &shown
	}
	g.heard = append(g.heard, h)
	next := g.script[0]
	if len(g.script) > 1 {
		g.script = g.script[1:]
	}
	r, err := next(h)
	if r != nil && r.Protocol == 0 {
		r.Protocol = 1
	}
	return r, err
}

func (g *greeter) failures() []wire.BootFailure {
	var out []wire.BootFailure
	for _, h := range g.heard {
		if h.Failure != nil {
			out = append(out, *h.Failure)
		}
	}
	return out
}

func gives(o *wire.BootTask) func(wire.BootCheckIn) (*wire.BootReply, error) {
	return func(wire.BootCheckIn) (*wire.BootReply, error) { return &wire.BootReply{Task: o}, nil }
}

func waits(w *wire.BootWait) func(wire.BootCheckIn) (*wire.BootReply, error) {
	return func(wire.BootCheckIn) (*wire.BootReply, error) { return &wire.BootReply{Wait: w}, nil }
}

func refuses(c muster.Code, text string) func(wire.BootCheckIn) (*wire.BootReply, error) {
	return func(wire.BootCheckIn) (*wire.BootReply, error) {
		return nil, muster.Errorf(c, "%s", text).WithHint("do something")
	}
}

// wires is a Network in memory.
type wires struct {
	mu      sync.Mutex
	nics    []NIC
	after   int // looks until the NICs are there
	leases  int
	refuse  int // leases that are not given
	applied []wire.BootLink
	fails   int // applies that fail
}

func (w *wires) NICs() ([]NIC, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.after--; w.after >= 0 {
		return nil, nil
	}
	return w.nics, nil
}
func (w *wires) Up(string) error { return nil }
func (w *wires) Lease(context.Context, string) (Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leases++; w.leases <= w.refuse {
		return Lease{}, errors.New("no answer")
	}
	return Lease{Address: netip.MustParsePrefix("10.0.0.5/24"), Renew: time.Minute}, nil
}
func (w *wires) Use(string, Lease) error { return nil }
func (w *wires) Apply(l []wire.BootLink) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails--; w.fails >= 0 {
		return errors.New("busy")
	}
	w.applied = l
	return nil
}

// roots is a Rooter in memory.
type roots struct {
	free               int64
	fetch, mount, exec []error // one for each time
	steps              []string
	stages             []wire.BootStage
}

func (r *roots) next(name string, list *[]error) error {
	r.steps = append(r.steps, name)
	if len(*list) == 0 {
		return nil
	}
	err := (*list)[0]
	*list = (*list)[1:]
	return err
}
func (r *roots) Available() int64                             { return r.free }
func (r *roots) Fetch(context.Context, *wire.BootFiles) error { return r.next("fetch", &r.fetch) }
func (r *roots) Mount(*wire.BootTask) error                   { return r.next("mount", &r.mount) }
func (r *roots) Switch(_ *wire.BootTask, st []wire.BootStage) error {
	r.stages = st
	return r.next("switch", &r.exec)
}

type rig struct {
	*Machine
	server *greeter
	net    *wires
	root   *roots
	screen *bytes.Buffer
	offs   int
	set    []time.Time
}

// pretended runs a test beside others in a bubble of pretended time.
func pretended(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func newRig(t *testing.T, script ...func(wire.BootCheckIn) (*wire.BootReply, error)) *rig {
	t.Helper()
	began := time.Now()
	up := func() time.Duration { return time.Since(began) }
	r := &rig{
		server: &greeter{script: script}, root: &roots{free: 1 << 40}, screen: &bytes.Buffer{},
		net: &wires{nics: []NIC{{Name: "eth0", MAC: mac1, Carrier: true}, {Name: "eth1", MAC: mac2}}},
	}
	r.Machine = &Machine{
		Settings: Settings{Boot: "b-0000-0001", MAC: mac1}, Server: r.server, Network: r.net, Root: r.root, Clock: muster.SystemClock{}, Up: up,
		Drivers: NewDrivers(ParseTable("", "", "", ""), &fakeKernel{}, nil, nil),
		Console: &Console{out: r.screen, up: up},
		Facts:   func() muster.Facts { return muster.Facts{Serial: "S1", UUID: "u1"} },
		Off:     func() { r.offs++ }, SetClock: func(t time.Time) { r.set = append(r.set, t) },
	}
	return r
}

func (r *rig) run(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	err := r.Run(ctx)
	if ctx.Err() != nil {
		t.Errorf("it does not end:\n%s", r.screen)
	}
	return err
}

func (r *rig) shows(t *testing.T, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(r.screen.String(), s) {
			t.Errorf("the console does not show %q:\n%s", s, r.screen)
		}
	}
}

func bootOrder() *wire.BootTask {
	return &wire.BootTask{
		Kind: wire.BootImage, Machine: "m1", Attempt: 1, Hostname: "n01", GiveUp: muster.Duration(60 * time.Second), Bootstrap: &wire.Bootstrap{Token: "secret"},
		Image: &wire.BootFiles{ID: "sha256:abc", Key: "secret", Root: wire.BootFile{Size: 1 << 20}},
		Links: []wire.BootLink{{MAC: mac1, Name: "mgmt0"}, {MAC: mac2, Name: "msg0"}},
	}
}

func TestBoots(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, refuses(muster.EUnavailable, "the server does not answer"), waits(&wire.BootWait{Reason: "the rack starts three at a time", Place: 4, ETA: muster.Duration(9000 * time.Millisecond), Next: muster.Duration(50 * time.Millisecond)}), gives(bootOrder()))
		r.net.after, r.net.refuse = 3, 2
		if err := r.run(t); err != nil {
			t.Fatal(err)
		}
		r.shows(t, "drivers: eth0 "+mac1, "address: 10.0.0.5/24", "check-in: FAILED: the server does not answer", "check-in: do something",
			"waiting: the rack starts three at a time; place 4, about 9 s", "task boot for m1 as n01, attempt 1", "image: abc, 1.0 MiB verified", "root: ", "switch: n01")
		var names []string
		for _, s := range r.root.stages {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != "kernel init drivers address check-in image root switch" {
			t.Errorf("stages %s", got)
		}
		h := r.server.heard
		if h[0].Facts == nil || h[1].Facts == nil || h[2].Facts != nil || h[0].Serial != "S1" || h[0].UUID != "u1" || len(h[0].MACs) != 2 || h[0].Address.String() != "10.0.0.5" {
			t.Errorf("%+v", h)
		}
		if len(r.net.applied) != 2 || strings.Contains(r.screen.String(), "secret") {
			t.Errorf("%v\n%s", r.net.applied, r.screen)
		}
	})
}

// What fails is told, and tried again if that may help.
func TestFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	digest := muster.Errorf(muster.ECorrupt, "digests differ")
	for name, c := range map[string]struct {
		set   func(*rig, *wire.BootTask)
		codes string // that the server hears, each once
		final bool
		boots bool
	}{
		"fetch, then well":  {func(r *rig, _ *wire.BootTask) { r.root.fetch = []error{broken, broken} }, "network", false, true},
		"links, then well":  {func(r *rig, _ *wire.BootTask) { r.net.fails = 1 }, "network", false, true},
		"fetch, never well": {func(r *rig, _ *wire.BootTask) { r.root.fetch = make100(broken) }, "network", true, false},
		"digest":            {func(r *rig, _ *wire.BootTask) { r.root.fetch = []error{digest} }, "digest", true, false},
		"memory":            {func(r *rig, _ *wire.BootTask) { r.root.free = 1 << 20 }, "memory", true, false},
		"mount":             {func(r *rig, _ *wire.BootTask) { r.root.mount = []error{broken} }, "image", true, false},
		"init":              {func(r *rig, _ *wire.BootTask) { r.root.exec = []error{broken} }, "image", true, false},
		"no such NIC":       {func(_ *rig, o *wire.BootTask) { o.Links[1].MAC = "52:54:00:00:00:99" }, "task", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			pretended(t, func(t *testing.T) {
				o := bootOrder()
				r := newRig(t, gives(o))
				c.set(r, o)
				err := r.run(t)
				codes := map[string]bool{}
				final := false
				for _, f := range r.server.failures() {
					codes[f.Code] = true
					final = final || f.Final
				}
				if len(codes) != 1 || !codes[c.codes] || final != c.final {
					t.Errorf("the server heard %+v", r.server.failures())
				}
				if c.boots != (err == nil) || c.boots == (r.offs == 1) {
					t.Errorf("%v, off %d times\n%s", err, r.offs, r.screen)
				}
				if !c.boots && c.final && c.codes != "network" && len(r.root.steps) > 3 {
					t.Errorf("a final failure is tried again: %v", r.root.steps)
				}
				r.shows(t, "FAILED")
			})
		})
	}
}

func make100(err error) []error {
	out := make([]error, 1000)
	for i := range out {
		out[i] = err
	}
	return out
}

// A machine that gave up does another order that it gets, and goes off when told.
func TestAnotherOrder(t *testing.T) {
	pretended(t, func(t *testing.T) {
		again := bootOrder()
		again.Attempt = 2
		r := newRig(t, gives(bootOrder()), gives(bootOrder()), gives(again))
		r.root.fetch = []error{muster.Errorf(muster.ECorrupt, "digests differ")}
		if err := r.run(t); err != nil || strings.Join(r.root.steps, " ") != "fetch fetch mount switch" || r.offs != 0 {
			t.Errorf("%v, %v\n%s", err, r.root.steps, r.screen)
		}
		r = newRig(t, gives(bootOrder()), gives(&wire.BootTask{Kind: wire.BootOff}))
		r.root.fetch = []error{muster.Errorf(muster.ECorrupt, "digests differ")}
		if err := r.run(t); err != nil || r.offs != 1 || len(r.root.steps) != 1 {
			t.Errorf("%v, %v\n%s", err, r.root.steps, r.screen)
		}
	})
}

func TestWork(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, gives(&wire.BootTask{Kind: wire.BootDiscover, GiveUp: muster.Duration(60_000 * time.Millisecond)}), refuses(muster.EUnavailable, "away"), gives(&wire.BootTask{Kind: wire.BootOff}))
		r.Work = func(context.Context, *wire.BootTask, func(string, ...any)) (wire.BootTaskResult, *muster.Facts, error) {
			return wire.BootTaskResult{Passed: true}, &muster.Facts{Vendor: "found"}, nil
		}
		if err := r.run(t); err != nil || r.offs != 1 {
			t.Fatalf("%v\n%s", err, r.screen)
		}
		last := r.server.heard[len(r.server.heard)-1]
		if last.Done == nil || last.Done.Kind != wire.BootDiscover || last.Facts == nil || last.Facts.Vendor != "found" || len(r.server.heard) != 3 {
			t.Errorf("%+v", last)
		}
		// Who may be switched off from outside waits for that, and then goes by itself.
		r = newRig(t, gives(&wire.BootTask{Kind: wire.BootTest, GiveUp: muster.Duration(60_000 * time.Millisecond), Stay: muster.Duration(90_000 * time.Millisecond)}), gives(&wire.BootTask{Kind: wire.BootOff}))
		r.Work = func(context.Context, *wire.BootTask, func(string, ...any)) (wire.BootTaskResult, *muster.Facts, error) {
			return wire.BootTaskResult{Passed: true}, nil, nil
		}
		before := r.Clock.Now()
		if err := r.run(t); err != nil || r.offs != 1 || r.Clock.Now().Sub(before) < 90*time.Second {
			t.Errorf("%v after %v\n%s", err, r.Clock.Now().Sub(before), r.screen)
		}
		// What this program does not know is said so, and the machine goes off.
		r = newRig(t, gives(&wire.BootTask{Kind: "format", GiveUp: muster.Duration(10_000 * time.Millisecond)}))
		r.Work = newWorker(r.net, r.Clock).do
		if err := r.run(t); err == nil || r.offs != 1 || len(r.server.failures()) == 0 || r.server.failures()[0].Code != "work" {
			t.Errorf("%v, %+v\n%s", err, r.server.failures(), r.screen)
		}
	})
}

// attester is a TPM.
type attester struct{ wrong bool }

func (attester) Shown() wire.BootTPM {
	return wire.BootTPM{Endorsement: []byte{1}, Attestation: []byte{2}}
}
func (a attester) Answer(wire.BootChallenge, string, []byte) ([]byte, error) {
	if a.wrong {
		return nil, muster.Errorf(muster.EForbidden, "the TPM does not open it")
	}
	return []byte("answer"), nil
}

func TestTPM(t *testing.T) {
	pretended(t, func(t *testing.T) {
		ask := func(wire.BootCheckIn) (*wire.BootReply, error) {
			return &wire.BootReply{Challenge: &wire.BootChallenge{}}, nil
		}
		r := newRig(t, ask, gives(bootOrder()))
		r.TPM = func() Attester { return attester{} }
		if err := r.run(t); err != nil {
			t.Fatal(err)
		}
		h := r.server.heard
		if len(h) != 2 || h[0].TPM == nil || len(h[0].TPM.Answer) > 0 || string(h[1].TPM.Answer) != "answer" {
			t.Errorf("%+v", h)
		}
		// One that cannot answer, or is asked for ever, asks again later.
		for _, wrong := range []bool{true, false} {
			r = newRig(t, ask)
			r.TPM = func() Attester { return attester{wrong} }
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			err := r.Run(ctx)
			cancel()
			if err == nil || r.offs > 0 || len(r.root.steps) > 0 {
				t.Errorf("%v", err)
			}
			r.shows(t, "check-in: FAILED: the ")
		}
	})
}

func TestClock(t *testing.T) {
	pretended(t, func(t *testing.T) {
		server := time.Now().Add(1000 * time.Hour)
		r := newRig(t, func(wire.BootCheckIn) (*wire.BootReply, error) {
			return &wire.BootReply{Now: server, Task: bootOrder()}, nil
		})
		if err := r.run(t); err != nil || len(r.set) != 1 || !r.set[0].Equal(server) {
			t.Errorf("%v %v", err, r.set)
		}
	})
}

// Without the NIC or a lease it says so and goes on looking.
func TestNotThere(t *testing.T) {
	pretended(t, func(t *testing.T) {
		for says, set := range map[string]func(*rig){
			"waiting for the network card 52:54:00:00:00:77 that was booted from": func(r *rig) { r.Settings.MAC = "52:54:00:00:00:77" },
			"has no carrier for":       func(r *rig) { r.net.nics[0].Carrier = false },
			"address: eth0: no answer": func(r *rig) { r.net.refuse = 1 << 30 },
		} {
			r := newRig(t, gives(bootOrder()))
			set(r)
			ctx, cancel := context.WithTimeout(t.Context(), 80*time.Second)
			err := r.Run(ctx)
			cancel()
			if err == nil || len(r.server.heard) > 0 {
				t.Errorf("%s: %v", says, err)
			}
			r.shows(t, says)
		}
	})
}

// A lease is renewed while the machine waits.
func TestRenew(t *testing.T) {
	pretended(t, func(t *testing.T) {
		n := 0
		r := newRig(t, func(wire.BootCheckIn) (*wire.BootReply, error) {
			if n++; n < 6 {
				return &wire.BootReply{Wait: &wire.BootWait{Next: muster.Duration(30_000 * time.Millisecond)}}, nil
			}
			return &wire.BootReply{Task: bootOrder()}, nil
		})
		if err := r.run(t); err != nil || r.net.leases < 2 {
			t.Errorf("%v, %d leases", err, r.net.leases)
		}
	})
}

func TestConsole(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &Console{out: &out, up: func() time.Duration { return 1500 * time.Millisecond }}
	c.Say("a\x1b[2Jb\nc %d", 1)
	c.Say("a\x1b[2Jb\nc %d", 1)
	c.Fail("image", muster.Errorf(muster.ECorrupt, "x").WithHint("y").Wrap(errors.New("z")))
	want := "muster [   1.500] a�[2Jb c 1\r\nmuster [   1.500] image: FAILED: x (z)\r\nmuster [   1.500] image: y\r\n"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
}
