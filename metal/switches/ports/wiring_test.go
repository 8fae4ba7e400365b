package ports_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/switches"
	"github.com/muster-hpc/muster/metal/switches/ports"
)

// counted counts how often a switch was told something.
type counted struct {
	*switches.Pretended
	sets atomic.Int32
}

func (c *counted) Set(ctx context.Context, wants ...switches.Want) error {
	c.sets.Add(1)
	return c.Pretended.Set(ctx, wants...)
}

// site is two switches: one has everything of a and b, and the management of c,
// whose message port is at the other.
type site struct {
	*ports.Wiring
	one, two *counted
}

func nic(use, mac, sw, port string) muster.RegisteredNIC {
	return muster.RegisteredNIC{Use: use, MAC: mac, Switch: sw, Port: port}
}

func newSite(t *testing.T) *site {
	t.Helper()
	clock := muster.SystemClock{}
	s := &site{
		one: &counted{Pretended: switches.NewPretended(clock, "server", "a0", "a1", "b0", "b1", "c0", "h0")},
		two: &counted{Pretended: switches.NewPretended(clock, "c1")},
	}
	nics := map[muster.MachineID][]muster.RegisteredNIC{
		"a":    {nic("management", "52:54:00:00:00:a0", "pretended:one", "a0"), nic("message", "52:54:00:00:00:a1", "pretended:one", "a1")},
		"b":    {nic("message", "52:54:00:00:00:b1", "pretended:one", "b1"), nic("management", "52:54:00:00:00:b0", "pretended:one", "b0")},
		"c":    {nic("management", "52:54:00:00:00:c0", "pretended:one", "c0"), nic("message", "52:54:00:00:00:c1", "pretended:two", "c1")},
		"half": {nic("management", "52:54:00:00:00:d0", "pretended:one", "h0"), nic("message", "52:54:00:00:00:d1", "", "")},
		"lost": {nic("management", "52:54:00:00:00:e0", "", "")},
		"odd":  {nic("management", "52:54:00:00:00:f0", "telepathy:one", "f0")},
	}
	drivers := ports.Drivers{"pretended": func(place string) (switches.Switch, error) {
		return map[string]switches.Switch{"one": s.one, "two": s.two}[place], nil
	}}
	s.Wiring = ports.New(ports.Config{Open: drivers.Open, NICs: func(id muster.MachineID) []muster.RegisteredNIC { return nics[id] }})
	if err := s.one.Pretended.Set(t.Context(), switches.Want{Port: "server", VLAN: 1}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"server", "a0", "a1", "b0", "b1", "c0", "h0"} {
		s.one.Plug(p, true)
	}
	s.two.Plug("c1", true)
	return s
}

func (s *site) is(t *testing.T, want switches.Want) {
	t.Helper()
	sw := s.one
	if want.Port == "c1" {
		sw = s.two
	}
	ports, err := sw.Ports(t.Context(), want.Port)
	if err != nil || ports[0].Want != want {
		t.Fatalf("%s is %v, not %v (%v)", want.Port, ports[0].Want, want, err)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fails(t *testing.T, err error, code muster.Code, words string) {
	t.Helper()
	if muster.CodeOf(err) != code || !strings.Contains(err.Error(), words) {
		t.Fatalf("got %v, want %s with %q", err, code, words)
	}
}

// A machine comes into the network of a cluster and out of it, and is cut off; a new
// boot finds its management port open.
func TestLife(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ok(t, s.Manage(t.Context(), "a"))
	s.is(t, switches.Want{Port: "a0", VLAN: 1, Isolated: true})
	s.is(t, switches.Want{Port: "a1", VLAN: 1, Closed: true})
	ok(t, s.Join(t.Context(), "a", 12))
	s.is(t, switches.Want{Port: "a0", VLAN: 1, Isolated: true})
	s.is(t, switches.Want{Port: "a1", VLAN: 12})
	ok(t, s.Leave(t.Context(), "a"))
	s.is(t, switches.Want{Port: "a0", VLAN: 1, Isolated: true})
	s.is(t, switches.Want{Port: "a1", VLAN: 12, Closed: true})
	ok(t, s.Join(t.Context(), "a", 13))
	ok(t, s.Close(t.Context(), "a"))
	s.is(t, switches.Want{Port: "a0", VLAN: 1, Isolated: true, Closed: true})
	s.is(t, switches.Want{Port: "a1", VLAN: 13, Closed: true})
	ok(t, s.Leave(t.Context(), "a"))
	s.is(t, switches.Want{Port: "a0", VLAN: 1, Isolated: true, Closed: true}) // it stays as it is
	ok(t, s.Manage(t.Context(), "a"))
	s.is(t, switches.Want{Port: "a0", VLAN: 1, Isolated: true})
	s.is(t, switches.Want{Port: "a1", VLAN: 13, Closed: true})
	ok(t, s.Close(t.Context(), "a"))
	ok(t, s.Join(t.Context(), "a", 14))
	s.is(t, switches.Want{Port: "a0", VLAN: 1, Isolated: true})
}

// All machines of a cluster are one change of each switch.
func TestJoinAll(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ok(t, s.JoinAll(t.Context(), map[muster.MachineID]int{"a": 12, "b": 12, "c": 12, "lost": 12}))
	if s.one.sets.Load() != 1 || s.two.sets.Load() != 1 {
		t.Errorf("%d and %d changes", s.one.sets.Load(), s.two.sets.Load())
	}
	s.is(t, switches.Want{Port: "b1", VLAN: 12})
	s.is(t, switches.Want{Port: "c1", VLAN: 12})
	s.is(t, switches.Want{Port: "c0", VLAN: 1, Isolated: true})
	fails(t, s.JoinAll(t.Context(), map[muster.MachineID]int{"a": 13, "b": 1}), muster.EInvalid, "b")
	fails(t, s.Join(t.Context(), "a", switches.MaxVLAN+1), muster.EInvalid, "")
	s.is(t, switches.Want{Port: "a1", VLAN: 12})
	s.two.Fail(muster.Errorf(muster.EUnavailable, "no answer"))
	fails(t, s.JoinAll(t.Context(), map[muster.MachineID]int{"a": 15, "c": 15}), muster.EUnavailable, "no answer")
	s.is(t, switches.Want{Port: "a1", VLAN: 15}) // one switch does not keep the other
}

// A machine counts as cut off only with proof: of every interface, by a switch that
// does what it was told, at the ports that are its own.
func TestCloseNeedsProof(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if !s.Known("a") || s.Known("half") || s.Known("lost") || s.Known("nobody") {
		t.Error("what is known is wrong")
	}
	for _, id := range []muster.MachineID{"lost", "nobody"} {
		ok(t, s.Join(t.Context(), id, 12))
		ok(t, s.Leave(t.Context(), id))
		ok(t, s.Manage(t.Context(), id))
		fails(t, s.Close(t.Context(), id), muster.EUnavailable, string(id))
	}
	ok(t, s.Manage(t.Context(), "half"))
	fails(t, s.Close(t.Context(), "half"), muster.EUnavailable, "52:54:00:00:00:d1")
	s.is(t, switches.Want{Port: "h0", VLAN: 1, Isolated: true, Closed: true}) // what is known is closed all the same
	fails(t, s.Close(t.Context(), "odd"), muster.EInvalid, "telepathy")

	ok(t, s.Join(t.Context(), "c", 12))
	s.two.Lie(true)
	fails(t, s.Close(t.Context(), "c"), muster.EUnavailable, "c1")
	s.two.Lie(false)
	ok(t, s.Close(t.Context(), "c"))

	ok(t, s.Join(t.Context(), "a", 12))
	ok(t, s.Join(t.Context(), "b", 12))
	mac, err := net.ParseMAC("52:54:00:00:00:a1") // its cable leads to b's port
	ok(t, err)
	s.one.Send("b1", mac, net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 64)
	fails(t, s.Close(t.Context(), "a"), muster.EUnavailable, "b1")
}

func TestLink(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	is := func(id muster.MachineID, want power.Link) {
		t.Helper()
		got, err := s.Link(t.Context(), id)
		if err != nil || got != want {
			t.Fatalf("%s: %+v, not %+v (%v)", id, got, want, err)
		}
	}
	ok(t, s.Join(t.Context(), "a", 12))
	is("a", power.Link{Up: true}) // nobody says how fast
	s.one.Agree("a0", 10e6)
	is("a", power.Link{Up: true})
	s.one.Agree("a1", 100e6)
	is("a", power.Link{Up: true, Asleep: true})
	s.one.Agree("a1", 1e9)
	is("a", power.Link{Up: true})
	s.one.Plug("a1", false)
	is("a", power.Link{Up: true, Asleep: true})
	s.one.Plug("a0", false)
	is("a", power.Link{})
	ok(t, s.Leave(t.Context(), "a"))
	is("a", power.Link{}) // the management port is watched
	ok(t, s.Close(t.Context(), "a"))
	s.one.Plug("a0", true)
	is("a", power.Link{Closed: true})
	is("lost", power.Link{Unknown: true})
	is("nobody", power.Link{Unknown: true})
	s.one.Fail(muster.Errorf(muster.EUnavailable, "no answer"))
	_, err := s.Link(t.Context(), "a")
	fails(t, err, muster.EUnavailable, "no answer")
}

// Only who was seen at its own port, and nowhere else, speaks through it.
func TestThrough(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	through := func(id muster.MachineID, want bool) {
		t.Helper()
		got, err := s.Through(t.Context(), id)
		if err != nil || got != want {
			t.Fatalf("%s through its own port: %v, %v", id, got, err)
		}
	}
	all := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	mac, err := net.ParseMAC("52:54:00:00:00:a0")
	ok(t, err)
	ok(t, s.Join(t.Context(), "a", 12))
	ok(t, s.Join(t.Context(), "b", 12))
	through("a", false) // not seen at all
	through("lost", false)
	s.one.Send("b0", mac, all, 64)
	through("a", false) // at another's
	s.one.Send("a0", mac, all, 64)
	through("a", true)
	s.one.Send("b1", mac, all, 64)
	through("a", false) // and in another network
	places, err := s.Where(t.Context(), "52:54:00:00:00:a0", "pretended:one", "pretended:two")
	if err != nil || len(places) != 2 || places[0].Port != "b1" || places[0].VLAN != 12 || places[1].Port != "a0" {
		t.Errorf("seen at %+v, %v", places, err)
	}
}

func TestDrivers(t *testing.T) {
	t.Parallel()
	d := ports.DriversOf()
	if _, err := d.Open("ovs:/var/lib/muster/lab/switch"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"script:///usr/local/sbin/our-switch", "script:///usr/local/sbin/our-switch#sw-r1"} {
		if _, err := d.Open(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"script:", "script://", "script:our-switch", "script:///opt/../bin/sh", "script://#sw", "", "ovs", "cisco:10.0.0.1", "ovs:", "ovs:here"} {
		if _, err := d.Open(name); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}
