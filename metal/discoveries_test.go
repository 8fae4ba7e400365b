package metal_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/metal/bootapi"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/wire"
)

// byHand is a clock that stands still until it is set on.
type byHand struct {
	mu  sync.Mutex
	now time.Time
}

func (c *byHand) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *byHand) After(d time.Duration) <-chan time.Time {
	return muster.SystemClock{}.After(d)
}

func (c *byHand) pass(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

// inn is a site that lets discovered machines in.
type inn struct {
	boots *metal.Boots
	desk  *bootapi.Server
	clock *byHand
	found []muster.DiscoveredMachine
	full  error // what whoever is given discovered machines says
}

func openInn(dir string) (*inn, error) {
	s := &inn{clock: &byHand{now: time.Unix(1e9, 0)}}
	var err error
	s.boots, err = metal.Open(metal.Config{
		Dir: dir, Leased: address, Clock: s.clock, Discovery: true,
		On: func(context.Context, muster.MachineID) error { return nil },
		Report: func(context.Context, metal.State, []byte) (*wire.BootTask, error) { // as to a node
			return &wire.BootTask{Kind: wire.BootImage, Attempt: 1, Hostname: "n", Bootstrap: &wire.Bootstrap{Token: "t"}, Image: &wire.BootFiles{
				Key: "k", Root: wire.BootFile{Path: "r", Size: 1, Piece: 1 << 20, Pieces: [][]byte{make([]byte, 32)}},
			}}, nil
		},
		Files: func(id muster.MachineID, k wire.BootKind) (metal.Files, error) {
			return metal.Files{Kernel: []string{"/" + string(k) + string(id)}, Initramfs: []string{"/i"}, Server: "https://10.0.0.1:7700", CA: strings.Repeat("ab", 32)}, nil
		},
		OnDiscovered: func(_ context.Context, g muster.DiscoveredMachine) error { s.found = append(s.found, g); return s.full },
	})
	if err != nil {
		return nil, err
	}
	s.desk, err = bootapi.New(bootapi.Config{Registry: s.boots.Registry(), Clock: s.clock})
	return s, err
}

func guestMAC(i int) string { return fmt.Sprintf("52:54:00:00:%02x:%02x", i/256, i%256) }

func (s *inn) decide(mac string, change func(*netboot.Request)) netboot.Verdict {
	m, _ := dhcp.ParseMAC(mac)
	r := &netboot.Request{MAC: m}
	if change != nil {
		change(r)
	}
	return s.boots.Directory().Decide(r)
}

func (s *inn) hello(mac, number string, change func(*wire.BootCheckIn)) (*wire.BootReply, error) {
	from, _ := address(mac)
	h := &wire.BootCheckIn{Protocol: 1, Boot: number, Key: key(1), MAC: mac, MACs: []string{mac}, Address: from}
	if change != nil {
		change(h)
	}
	return s.desk.CheckIn(context.Background(), h, from)
}

// A machine that nobody knows is booted once to tell what it is, and not again for an
// hour; then it waits for approval, and that changes nothing.
func TestGuest(t *testing.T) {
	t.Parallel()
	s, err := openInn(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mac := guestMAC(1)
	v := s.decide(mac, func(r *netboot.Request) {
		r.Evidence = dhcp.Evidence{Trusted: true, Circuit: []byte("p7"), Remote: []byte("sw1")}
	})
	if v.Standing != dhcp.Unknown || v.Boot == "" {
		t.Fatalf("%+v", v)
	}
	b, ok := s.boots.Directory().Boot(v.Boot)
	if !ok || len(b.MACs) != 1 || b.MACs[0].String() != mac || b.Kernel[0] != "/discover" {
		t.Errorf("%+v, %v", b, ok)
	}
	if _, err := s.hello(guestMAC(2), v.Boot, nil); muster.CodeOf(err) != muster.EForbidden {
		t.Errorf("another machine asks with its number: %v", err)
	}
	facts := func(h *wire.BootCheckIn) {
		h.Facts, h.Serial, h.TPM = &muster.Facts{Cores: 8}, "S1", &wire.BootTPM{Endorsement: []byte{1}, Attestation: []byte{2}}
	}
	s.full = muster.Errorf(muster.EUnavailable, "too many at once")
	if _, err := s.hello(mac, v.Boot, facts); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("what could not be written down is not said again: %v", err)
	}
	s.full = nil
	r, err := s.hello(mac, v.Boot, facts)
	if err != nil || r.Task == nil || r.Task.Kind != wire.BootDiscover || r.Task.Check() != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if g := s.found[1]; g.MAC != mac || g.Serial != "S1" || g.Facts.Cores != 8 || string(g.Endorsement) != "\x01" || g.Switch != "sw1" || g.Port != "p7" || g.Address != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("%+v", g)
	}
	if again := s.decide(mac, nil); again.Boot != v.Boot {
		t.Error("its first program asks for an address, and has another boot")
	}
	if s.found[1].Whole {
		t.Error("what it told at first is taken for all")
	}
	r, err = s.hello(mac, v.Boot, func(h *wire.BootCheckIn) {
		h.Done, h.Facts = &wire.BootTaskResult{Kind: wire.BootDiscover}, &muster.Facts{Cores: 8}
	})
	if g := s.found[len(s.found)-1]; !g.Whole {
		t.Error("it has told all, and that is not said")
	}
	if err != nil || r.Task == nil || r.Task.Kind != wire.BootOff {
		t.Errorf("%+v, %v", r, err)
	}
	wait := registered(2)[1]
	wait.State = muster.RegistrationWaiting
	if err := s.boots.Register([]muster.Registration{wait}); err != nil {
		t.Fatal(err)
	}
	if v := s.decide(mac, nil); v.Boot != "" || v.Standing != dhcp.Unknown || !strings.Contains(v.Why, "lately") {
		t.Errorf("it is booted again at once: %+v", v)
	}
	s.clock.pass(time.Hour)
	next := s.decide(mac, nil)
	if next.Boot == "" || next.Boot == v.Boot {
		t.Errorf("after an hour: %+v", next)
	}
	if _, err := s.hello(mac, v.Boot, nil); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("an old number: %v", err)
	}
	// Forbidden: nothing any more, in the middle of a boot, too.
	wait.State = muster.RegistrationBlocked
	if err := s.boots.Register([]muster.Registration{wait}); err != nil {
		t.Fatal(err)
	}
	if v := s.decide(mac, nil); v.Standing != dhcp.Forbidden || v.Boot != "" {
		t.Errorf("%+v", v)
	}
	if _, ok := s.boots.Directory().Boot(next.Boot); ok {
		t.Error("a forbidden machine may load")
	}
	if _, err := s.hello(mac, next.Boot, nil); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("%v", err)
	}
}

// However many addresses somebody makes up, so many are remembered, and one that
// spoke is not forgotten for them.
func TestGuestsBounded(t *testing.T) {
	t.Parallel()
	s, err := openInn(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mine := s.decide(guestMAC(0), nil).Boot
	if _, err := s.hello(guestMAC(0), mine, nil); err != nil {
		t.Fatal(err)
	}
	numbers := map[string]bool{}
	for i := 1; i < 6000; i++ {
		s.clock.pass(time.Millisecond)
		v := s.decide(guestMAC(i), nil)
		if v.Boot == "" || numbers[v.Boot] {
			t.Fatalf("%d: %+v", i, v)
		}
		numbers[v.Boot] = true
	}
	left := 0
	for n := range numbers {
		if _, ok := s.boots.Directory().Boot(n); ok {
			left++
		}
	}
	if left != 4095 {
		t.Errorf("%d are remembered", left)
	}
	if _, err := s.hello(guestMAC(0), mine, nil); err != nil {
		t.Errorf("one that spoke was forgotten: %v", err)
	}
}

// Whatever happens, in whatever order, a machine that is not approved is told to
// discover or to go off, and is given no seed and no image.
func TestGuestsGetNothingProperty(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		s, err := openInn(fmt.Sprint(base, "/", runs))
		if err != nil {
			t.Fatal(err)
		}
		machines := registered(3)
		approved := map[string]bool{}
		var numbers []string
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			i := rapid.IntRange(0, 2).Draw(t, "machine")
			m := &machines[i]
			mac := m.NICs[0].MAC
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				m.State = rapid.SampledFrom([]muster.RegistrationState{"", muster.RegistrationWaiting, muster.RegistrationApproved, muster.RegistrationBlocked}).Draw(t, "state")
				approved[mac] = approved[mac] || m.State == muster.RegistrationApproved
				var list []muster.Registration
				for _, x := range machines {
					if x.State != "" && (x.ID == m.ID || rapid.Bool().Draw(t, "kept")) {
						list = append(list, x)
					}
				}
				if err := s.boots.Register(list); err != nil {
					t.Fatal(err)
				}
			case 1:
				_ = s.boots.Start(context.Background(), m.ID, metal.Task{Kind: wire.BootImage, Attempt: 1, Image: "sha256:x"})
			case 2:
				if v := s.decide(mac, nil); v.Boot != "" {
					numbers = append(numbers, v.Boot)
				}
			case 3:
				s.clock.pass(time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds")) * time.Second)
			case 4:
				if len(numbers) == 0 {
					continue
				}
				n := rapid.SampledFrom(numbers).Draw(t, "number")
				r, err := s.hello(mac, n, func(h *wire.BootCheckIn) {
					if rapid.Bool().Draw(t, "done") {
						h.Done = &wire.BootTaskResult{Kind: wire.BootDiscover}
					}
				})
				if err != nil || r.Task == nil || approved[mac] {
					continue
				}
				if o := r.Task; o.Kind != wire.BootDiscover && o.Kind != wire.BootOff || o.Bootstrap != nil || o.Image != nil || len(o.Files) > 0 {
					t.Fatalf("%s, which was never approved, is told %+v", mac, o)
				}
			}
		}
	})
}

// What is told of boots agrees with where they are: those that wait stand in the queue of
// their rack, in order, and nobody else does.
func TestBootsAreTold(t *testing.T) {
	t.Parallel()
	machines := registered(70) // r0 has 60, r1 the rest
	limits := quick()
	limits.Window = 2
	s := newSite(t, machines, limits)
	if _, ok := s.boots.BootOf("n0000"); ok {
		t.Error("there is a boot of a machine with nothing to do")
	}
	for _, m := range machines {
		if err := s.boots.Start(t.Context(), m.ID, order(wire.BootDiscover, 1)); err != nil {
			t.Fatal(err)
		}
	}
	s.await(t, "n0001", metal.StepBooting)
	s.await(t, "n0061", metal.StepBooting)
	q := s.boots.Queue("r0")
	if len(q) != 58 || len(s.boots.Queue("")) != 66 || len(s.boots.Queue("r9")) != 0 {
		t.Fatalf("%d and %d wait", len(q), len(s.boots.Queue("")))
	}
	for i, x := range q {
		b, ok := s.boots.BootOf(x.Machine)
		if x.Place != i+1 || x.Rack != "r0" || x.Kind != wire.BootDiscover || x.ETA.IsZero() || !ok || b.Step != "queued" || b.Queue == nil || b.Queue.Place != x.Place {
			t.Fatalf("%d: %+v, %+v", i, x, b)
		}
	}
	if b, ok := s.boots.BootOf("n0000"); !ok || b.Queue != nil || b.Step != "booting" || b.Address != "10.0.0.0" {
		t.Errorf("%+v, %v", b, ok)
	}
}
