package metal_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/metal/bootapi"
	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/wire"
)

// site is a site of machines that only pretend: what was switched on, and who asked.
type site struct {
	dir   string
	boots *metal.Boots
	desk  *bootapi.Server
	stop  func()

	mu    sync.Mutex
	on    []muster.MachineID
	fail  error // of switching on
	block chan struct{}
	told  map[muster.MachineID]muster.Facts
}

func registered(n int) (list []muster.Registration) {
	for i := range n {
		list = append(list, muster.Registration{
			ID: muster.MachineID(fmt.Sprintf("n%04d", i)), State: muster.RegistrationApproved, Rack: fmt.Sprintf("r%d", i/60),
			Power: muster.PowerAddress{Kind: muster.PowerWOL},
			NICs: []muster.RegisteredNIC{
				{MAC: fmt.Sprintf("52:54:00:00:%02x:%02x", i/256, i%256), Use: muster.UseManagement, Switch: "sw", Port: fmt.Sprint("p", i)},
				{MAC: fmt.Sprintf("52:54:00:01:%02x:%02x", i/256, i%256), Use: muster.UseMessage},
			},
		})
	}
	return list
}

// address is the one that is leased to a MAC.
func address(mac string) (netip.Addr, bool) {
	m, err := dhcp.ParseMAC(mac)
	if err != nil || m[3] != 0 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte{10, 0, m[4], m[5]}), true
}

func (s *site) open(t *testing.T, machines []muster.Registration, limits bootqueue.Limits) {
	t.Helper()
	var err error
	s.boots, err = metal.Open(metal.Config{
		Dir: s.dir, Leased: address, Report: func(_ context.Context, st metal.State, payload []byte) (*wire.BootTask, error) {
			if string(payload) != `"told"` {
				return nil, fmt.Errorf("payload %q", payload)
			}
			return &wire.BootTask{Kind: st.Kind, Machine: "told", Attempt: st.Attempt, GiveUp: muster.Duration(1 * time.Second)}, nil
		}, Limits: func(string) bootqueue.Limits { return limits },
		On: func(ctx context.Context, id muster.MachineID) error {
			s.mu.Lock()
			s.on = append(s.on, id)
			err, block := s.fail, s.block
			s.mu.Unlock()
			if block != nil {
				select {
				case <-block:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return err
		},
		Files: func(muster.MachineID, wire.BootKind) (metal.Files, error) {
			return metal.Files{Kernel: []string{"/k"}, Initramfs: []string{"/i"}, Server: "https://10.0.0.1:7700", CA: strings.Repeat("ab", 32)}, nil
		},
		OnFacts: func(id muster.MachineID, f muster.Facts, _ muster.Trust) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told[id] = f
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.desk, err = bootapi.New(bootapi.Config{Registry: s.boots.Registry()}); err != nil {
		t.Fatal(err)
	}
	if err := s.boots.Register(machines); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.boots.Run(ctx) }()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(s.stop)
}

func newSite(t *testing.T, machines []muster.Registration, limits bootqueue.Limits) *site {
	s := &site{dir: t.TempDir(), told: map[muster.MachineID]muster.Facts{}}
	s.open(t, machines, limits)
	return s
}

func quick() bootqueue.Limits {
	return bootqueue.Limits{Rate: 1000, Burst: 100, Window: 100, Typical: time.Second, Patience: time.Minute}
}

func order(kind wire.BootKind, attempt int64) metal.Task {
	return metal.Task{Kind: kind, Attempt: attempt, For: "c-1", Payload: []byte(`"told"`)}
}

func (s *site) state(id muster.MachineID) metal.State {
	for _, st := range s.boots.States(id) {
		return st
	}
	return metal.State{}
}

// await waits until a machine's boot is at a step.
func (s *site) await(t *testing.T, id muster.MachineID, step metal.Step) metal.State {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if st := s.state(id); st.Step == step {
			return st
		}
	}
	t.Fatalf("%s is %+v and not %s", id, s.state(id), step)
	return metal.State{}
}

func key(b byte) []byte { return slices.Repeat([]byte{b}, 32) }

// hello says what a machine's first program does.
func (s *site) hello(m muster.Registration, number string, k []byte, change func(*wire.BootCheckIn)) (*wire.BootReply, error) {
	h := &wire.BootCheckIn{Protocol: 1, Boot: number, Key: k, MAC: m.NICs[0].MAC, MACs: []string{m.NICs[0].MAC, m.NICs[1].MAC}}
	from, _ := address(m.NICs[0].MAC)
	h.Address = from
	if change != nil {
		change(h)
	}
	return s.desk.CheckIn(context.Background(), h, from)
}

func (s *site) decide(m muster.Registration) netboot.Verdict {
	mac, _ := dhcp.ParseMAC(m.NICs[0].MAC)
	return s.boots.Directory().Decide(&netboot.Request{MAC: mac})
}

// A machine is ordered to tell what it is: it is switched on, finds its boot, gets its
// order once, does it, and is then told nothing more.
func TestOneBoot(t *testing.T) {
	t.Parallel()
	machines := registered(2)
	s := newSite(t, machines, quick())
	m := machines[0]
	if v := s.decide(m); v.Standing != dhcp.Known || v.Boot != "" || v.Why == "" {
		t.Errorf("nothing is ordered, and it may have %+v", v)
	}
	if err := s.boots.Start(t.Context(), m.ID, order(wire.BootDiscover, 1)); err != nil {
		t.Fatal(err)
	}
	st := s.await(t, m.ID, metal.StepBooting)
	if v := s.decide(m); v.Boot != st.Number {
		t.Errorf("it may have %+v, and its boot is %s", v, st.Number)
	}
	if b, ok := s.boots.Directory().Boot(st.Number); !ok || len(b.MACs) != 2 || b.Kernel[0] != "/k" {
		t.Errorf("its boot is %+v, %v", b, ok)
	}
	if _, ok := s.boots.Directory().Boot("nobodys0000"); ok {
		t.Error("there is a boot of nobody")
	}
	if _, err := s.hello(machines[1], st.Number, key(9), nil); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("another machine asks with its number: %v", err)
	}
	r, err := s.hello(m, st.Number, key(1), func(h *wire.BootCheckIn) { h.Facts = &muster.Facts{Cores: 8} })
	if err != nil || r.Task == nil || r.Task.Kind != wire.BootDiscover {
		t.Fatalf("%+v, %v", r, err)
	}
	s.await(t, m.ID, metal.StepRunning)
	if s.told[m.ID].Cores != 8 {
		t.Errorf("its facts are %+v", s.told[m.ID])
	}
	if r, err := s.hello(m, st.Number, key(2), nil); err != nil || r.Task != nil || r.Wait == nil {
		t.Errorf("a second program of the same machine gets: %+v, %v", r, err)
	}
	half := func(h *wire.BootCheckIn) { h.State, h.Progress = "clean", "clean: half of it" }
	if r, err := s.hello(m, st.Number, key(1), half); err != nil || r.Task == nil || s.state(m.ID).Doing != "clean: half of it" {
		t.Errorf("the same program asks again: %+v, %v", r, err)
	}
	r, err = s.hello(m, st.Number, key(1), func(h *wire.BootCheckIn) { h.Done = &wire.BootTaskResult{Kind: wire.BootDiscover, Passed: true} })
	if err != nil || r.Task == nil || r.Task.Kind != wire.BootOff {
		t.Errorf("when it is done it is told %+v, %v", r, err)
	}
	if st := s.await(t, m.ID, metal.StepDone); st.Done == nil || !st.Done.Passed {
		t.Errorf("%+v", st)
	}
	if v := s.decide(m); v.Boot != "" {
		t.Errorf("its boot is over, and it may have %+v", v)
	}
	if err := s.boots.Forget(t.Context(), m.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.hello(m, st.Number, key(1), nil); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("its boot is forgotten: %v", err)
	}
}

// kill -9 between power and hello, and between order and end: the machine comes back
// with its number, waits until its order is known again, and nobody else gets it.
func TestRestart(t *testing.T) {
	t.Parallel()
	machines := registered(2)
	s := newSite(t, machines, quick())
	m := machines[0]
	start := func() {
		if err := s.boots.Start(t.Context(), m.ID, order(wire.BootDiscover, 7)); err != nil {
			t.Fatal(err)
		}
	}
	start()
	number := s.await(t, m.ID, metal.StepBooting).Number
	again := func() { s.stop(); s.open(t, machines, quick()) }
	again()
	start()
	if got := s.state(m.ID).Number; got != number {
		t.Errorf("the same order has another number: %s, not %s", got, number)
	}
	if r, err := s.hello(m, number, key(1), nil); err != nil || r.Task == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	again()
	if r, err := s.hello(m, number, key(2), nil); err != nil || r.Task != nil || r.Wait == nil {
		t.Errorf("after a restart a second program gets: %+v, %v", r, err)
	}
	start()
	if r, err := s.hello(m, number, key(1), nil); err != nil || r.Task == nil {
		t.Errorf("after a restart the first program gets %+v, %v", r, err)
	}
	if len(s.on) != 1 {
		t.Errorf("it was switched on %d times", len(s.on))
	}
	// Another attempt is another boot: the old number is worth nothing.
	if err := s.boots.Start(t.Context(), m.ID, order(wire.BootDiscover, 8)); err != nil {
		t.Fatal(err)
	}
	next := s.await(t, m.ID, metal.StepBooting)
	if _, err := s.hello(m, number, key(1), nil); next.Number == number || muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("the number of the attempt before: %v", err)
	}
	again()
	if err := s.boots.Register(machines[1:]); err != nil {
		t.Fatal(err)
	}
	again()
	if got := s.boots.States(); len(got) != 0 {
		t.Errorf("a machine that is not registered any more boots: %+v", got)
	}
}

// Notes of an earlier epoch are restored. Neither the number of such a boot nor what was done
// in it is taken for the boot that is ordered now, although it is the same kind of order.
func TestBootsOfAnEarlierEpoch(t *testing.T) {
	t.Parallel()
	machines := registered(2)
	s := newSite(t, machines, quick())
	run, clean := machines[0], machines[1]
	did := func(h *wire.BootCheckIn) { h.Done = &wire.BootTaskResult{Kind: wire.BootClean, Passed: true} }
	o := order(wire.BootImage, 5)
	o.Image = "sha256:1"
	if err := s.boots.Start(t.Context(), run.ID, o); err != nil {
		t.Fatal(err)
	}
	if err := s.boots.Start(t.Context(), clean.ID, order(wire.BootClean, 1_700_000_000_000)); err != nil {
		t.Fatal(err)
	}
	ran, cleaned := s.await(t, run.ID, metal.StepBooting).Number, s.await(t, clean.ID, metal.StepBooting).Number
	for m, number := range map[*muster.Registration]string{&run: ran, &clean: cleaned} {
		_, _ = s.hello(*m, number, key(1), nil) // what this site tells of images is none
		s.await(t, m.ID, metal.StepRunning)
	}
	if _, err := s.hello(clean, cleaned, key(1), did); err != nil {
		t.Fatal(err)
	}
	s.await(t, clean.ID, metal.StepDone)
	s.stop()
	s.open(t, machines, quick()) // as after a restore
	o.Attempt = muster.FirstAttempt(2)
	if err := s.boots.Start(t.Context(), run.ID, o); err != nil {
		t.Fatal(err)
	}
	if err := s.boots.Start(t.Context(), clean.ID, order(wire.BootClean, 1_700_000_000_001)); err != nil {
		t.Fatal(err)
	}
	for m, number := range map[*muster.Registration]string{&run: ran, &clean: cleaned} {
		st := s.await(t, m.ID, metal.StepBooting)
		if st.Number == number || st.Done != nil || st.Attempt == 5 {
			t.Errorf("%s: %+v", m.ID, st)
		}
		for _, change := range []func(*wire.BootCheckIn){nil, did} {
			if r, err := s.hello(*m, number, key(1), change); muster.CodeOf(err) != muster.ENotFound {
				t.Errorf("%s: with the number of before it is told %+v, %v", m.ID, r, err)
			}
		}
		if v := s.decide(*m); v.Boot != st.Number {
			t.Errorf("%s may boot %+v", m.ID, v)
		}
		if st := s.state(m.ID); st.Step != metal.StepBooting || st.Done != nil {
			t.Errorf("%s: %+v", m.ID, st)
		}
	}
}

// A record that a full disk spoiled is forgotten, and its machine is started anew: no
// other one is touched by it.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	machines := registered(2)
	s := newSite(t, machines, quick())
	for _, m := range machines {
		if err := s.boots.Start(t.Context(), m.ID, order(wire.BootDiscover, 1)); err != nil {
			t.Fatal(err)
		}
		s.await(t, m.ID, metal.StepBooting)
	}
	s.stop()
	for name, text := range map[string]string{"n0000.json": `{"document":"metal-boot/1","content":{"machine":"n0000"}}`, "n0009.json": `{`, "x.json.new": "half"} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.open(t, machines, quick())
	if got := s.boots.States(); len(got) != 1 || got[0].Machine != "n0001" {
		t.Errorf("%+v", got)
	}
	if err := s.boots.Start(t.Context(), "n0000", order(wire.BootDiscover, 1)); err != nil {
		t.Fatal(err)
	}
	s.await(t, "n0000", metal.StepBooting)
}

// To a machine that is forbidden while it boots nothing is answered from then on: not
// where it loads from, not what it was ordered.
func TestForbiddenInItsBoot(t *testing.T) {
	t.Parallel()
	machines := registered(1)
	s := newSite(t, machines, quick())
	if err := s.boots.Start(t.Context(), "n0000", order(wire.BootDiscover, 1)); err != nil {
		t.Fatal(err)
	}
	st := s.await(t, "n0000", metal.StepBooting)
	if r, err := s.hello(machines[0], st.Number, key(1), nil); err != nil || r.Task == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	machines[0].State = muster.RegistrationBlocked
	if err := s.boots.Register(machines); err != nil {
		t.Fatal(err)
	}
	for _, k := range [][]byte{key(1), key(2)} {
		if r, err := s.hello(machines[0], st.Number, k, nil); muster.CodeOf(err) != muster.ENotFound {
			t.Errorf("a forbidden machine is told %+v, %v", r, err)
		}
	}
	if b, ok := s.boots.Directory().Boot(st.Number); ok {
		t.Errorf("a forbidden machine loads %+v", b)
	}
}

// What goes wrong on the way is told, with what to look at.
func TestTrouble(t *testing.T) {
	t.Parallel()
	machines := registered(3)
	limits := quick()
	limits.Typical, limits.Patience = 10*time.Millisecond, 50*time.Millisecond
	s := newSite(t, machines, limits)
	if err := s.boots.Start(t.Context(), "n0000", order(wire.BootDiscover, 1)); err != nil {
		t.Fatal(err)
	}
	if f := s.await(t, "n0000", metal.StepFailed).Failure; f == nil || f.Code != "silent" || f.Hint == "" {
		t.Errorf("%+v", f)
	}
	s.mu.Lock()
	s.fail = muster.Errorf(muster.EUnauth, "the controller knows another password").WithHint("change it")
	s.mu.Unlock()
	if err := s.boots.Start(t.Context(), "n0001", order(wire.BootDiscover, 1)); err != nil {
		t.Fatal(err)
	}
	if f := s.await(t, "n0001", metal.StepFailed).Failure; f == nil || f.Text != "the controller knows another password" || f.Hint != "change it" || f.Stage != "power" {
		t.Errorf("%+v", f)
	}
	s.mu.Lock()
	s.fail, s.block = nil, make(chan struct{})
	s.mu.Unlock()
	if err := s.boots.Start(t.Context(), "n0001", order(wire.BootDiscover, 1)); err != nil { // a failed order may be given again
		t.Fatal(err)
	}
	s.await(t, "n0001", metal.StepStarting)
	if err := s.boots.Forget(t.Context(), "n0001"); err != nil { // ends the switching on
		t.Fatal(err)
	}
	if got := s.boots.States(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	for name, err := range map[string]error{
		"unknown": s.boots.Start(t.Context(), "x", order(wire.BootDiscover, 1)),
		"attempt": s.boots.Start(t.Context(), "n0002", metal.Task{Kind: wire.BootDiscover}),
		"kind":    s.boots.Start(t.Context(), "n0002", order("dance", 1)),
	} {
		if err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	machines[2].State = muster.RegistrationBlocked
	if err := s.boots.Register(machines); err != nil {
		t.Fatal(err)
	}
	if err := s.boots.Start(t.Context(), "n0002", order(wire.BootDiscover, 1)); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("a forbidden machine: %v", err)
	}
	if v := s.decide(machines[2]); v.Standing != dhcp.Forbidden {
		t.Errorf("a forbidden machine may have %+v", v)
	}
	if v := s.decide(registered(9)[8]); v.Standing != dhcp.Forbidden {
		t.Errorf("an unknown machine may have %+v where there are no guests", v)
	}
}

// Hundreds of machines in ten racks: no rack has more between power and hello than
// it may, all come, and those of a rack in the order in which they were asked for.
func TestStorm(t *testing.T) {
	t.Parallel()
	n := 600
	if testing.Short() {
		n = 200
	}
	machines := registered(n)
	limits := quick()
	limits.Window, limits.Burst = 16, 1000
	s := newSite(t, machines, limits)
	for _, m := range machines {
		if err := s.boots.Start(t.Context(), m.ID, order(wire.BootDiscover, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if p := s.state(machines[n-1].ID).Place; p.Ahead == 0 || p.ETA.IsZero() {
		t.Errorf("the last of a rack stands at %+v", p)
	}
	for left := n; left > 0; {
		inside := map[string]int{}
		said := 0
		for _, st := range s.boots.States() {
			switch i := slices.IndexFunc(machines, func(m muster.Registration) bool { return m.ID == st.Machine }); st.Step {
			case metal.StepStarting:
				inside[machines[i].Rack]++
			case metal.StepBooting:
				inside[machines[i].Rack]++
				if _, err := s.hello(machines[i], st.Number, key(1), nil); err != nil {
					t.Fatal(err)
				}
				said++
			}
		}
		for r, k := range inside {
			if k > limits.Window {
				t.Fatalf("%d machines of %s boot at once", k, r)
			}
		}
		left -= said
		time.Sleep(time.Millisecond)
	}
	last := map[string]muster.MachineID{}
	ahead := 0
	for _, id := range s.on {
		var i int
		fmt.Sscanf(string(id), "n%d", &i)
		if r := machines[i].Rack; id < last[r] {
			ahead++ // they are let go in order, and switched on beside each other
		} else {
			last[r] = id
		}
	}
	if ahead > n/2 {
		t.Errorf("%d of %d were switched on before one that had asked earlier", ahead, n)
	}
}
