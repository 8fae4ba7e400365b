package switchtest

import (
	"bytes"
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/switches"
)

// Rig is a switch with something on its ports that can send and hear.
type Rig interface {
	Switch() switches.Switch
	// Ports names at least four ports, all connected.
	Ports() []string
	// Send passes a frame into a port from what hangs on it, and tells on which
	// other ports it was heard.
	Send(t *testing.T, port string, frame []byte) []string
	// Unplug takes what hangs on a port away; Plug brings it back.
	Unplug(t *testing.T, port string)
	Plug(t *testing.T, port string)
	// Restart restarts the switch, as after a loss of power. Nil: it cannot.
	Restart() func(t *testing.T)
}

// Run runs the suite. make gives a new rig each time.
func Run(t *testing.T, make func(t *testing.T) Rig) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Rig)
	}{
		{"networks are apart", apart}, {"isolated ports meet only others", isolated}, {"closed ports pass nothing", closed},
		{"wishes may be repeated", repeated}, {"every fault of a wish at once", faults}, {"addresses are learned and forgotten", addresses},
		{"links", links}, {"counters", counters}, {"a restart changes nothing", restarted}, {"a batch is one", batch},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, make(t)) })
	}
}

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return c
}

// mac is the address of what hangs on the n-th port.
func mac(n int) net.HardwareAddr { return net.HardwareAddr{0x02, 0, 0, 0, 0x77, byte(n)} }

// frame is one between two addresses; to nil: to all.
func frame(from, to net.HardwareAddr) []byte {
	if to == nil {
		to = bytes.Repeat([]byte{0xff}, 6)
	}
	f := append(append(slices.Clone([]byte(to)), from...), 0x88, 0xb5) // EtherType for experiments
	return append(f, bytes.Repeat([]byte{7}, 50)...)
}

func set(t *testing.T, r Rig, wants ...switches.Want) {
	t.Helper()
	if err := r.Switch().Set(ctx(t), wants...); err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(wants))
	for i, w := range wants {
		names[i] = w.Port
	}
	ports, err := r.Switch().Ports(ctx(t), names...)
	if err != nil {
		t.Fatal(err)
	}
	if err := switches.Differ(ports, wants); err != nil || len(ports) != len(wants) {
		t.Fatalf("read back %d ports: %v", len(ports), err)
	}
}

func hears(t *testing.T, r Rig, from int, to net.HardwareAddr, want ...string) {
	t.Helper()
	got := r.Send(t, r.Ports()[from], frame(mac(from), to))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("a frame from %s was heard on %q, not on %q", r.Ports()[from], got, want)
	}
}

func apart(t *testing.T, r Rig) {
	p := r.Ports()
	set(t, r, switches.Want{Port: p[0], VLAN: 10}, switches.Want{Port: p[1], VLAN: 10}, switches.Want{Port: p[2], VLAN: 11}, switches.Want{Port: p[3], VLAN: 11})
	hears(t, r, 0, nil, p[1])
	hears(t, r, 3, nil, p[2])
	hears(t, r, 2, mac(0), p[3]) // who is known in another network is not known in this one
	set(t, r, switches.Want{Port: p[1], VLAN: 11})
	hears(t, r, 0, nil)
	hears(t, r, 3, nil, p[1], p[2])
}

func isolated(t *testing.T, r Rig) {
	p := r.Ports()
	set(t, r, switches.Want{Port: p[0], VLAN: 1}, switches.Want{Port: p[1], VLAN: 1, Isolated: true}, switches.Want{Port: p[2], VLAN: 1, Isolated: true}, switches.Want{Port: p[3], VLAN: 2})
	hears(t, r, 1, nil, p[0])
	hears(t, r, 2, nil, p[0])
	hears(t, r, 0, nil, p[1], p[2])
	hears(t, r, 1, mac(2)) // nor by address
	hears(t, r, 1, mac(0), p[0])
}

func closed(t *testing.T, r Rig) {
	p := r.Ports()
	set(t, r, switches.Want{Port: p[0], VLAN: 5}, switches.Want{Port: p[1], VLAN: 5, Isolated: true}, switches.Want{Port: p[2], VLAN: 5}, switches.Want{Port: p[3], VLAN: 6})
	hears(t, r, 0, nil, p[1], p[2])
	if err := switches.Close(ctx(t), r.Switch(), p[1], p[2]); err != nil {
		t.Fatal(err)
	}
	hears(t, r, 0, nil)
	hears(t, r, 1, nil)
	hears(t, r, 2, nil) // two closed ones do not hear each other
	hears(t, r, 0, mac(1))
	if err := switches.Open(ctx(t), r.Switch(), p[1], p[2]); err != nil {
		t.Fatal(err)
	}
	ports, err := r.Switch().Ports(ctx(t), p[1])
	if want := (switches.Want{Port: p[1], VLAN: 5, Isolated: true}); err != nil || ports[0].Want != want {
		t.Fatalf("opened it is %v, not %v (%v)", ports, want, err)
	}
	hears(t, r, 2, nil, p[0], p[1])
}

func repeated(t *testing.T, r Rig) {
	p := r.Ports()
	wants := []switches.Want{{Port: p[0], VLAN: 7}, {Port: p[1], VLAN: 7, Closed: true}}
	for range 3 {
		set(t, r, wants...)
	}
	if err := r.Switch().Set(ctx(t)); err != nil {
		t.Fatalf("no wish at all: %v", err)
	}
}

func faults(t *testing.T, r Rig) {
	p := r.Ports()
	before, err := r.Switch().Ports(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	err = r.Switch().Set(ctx(t), switches.Want{Port: p[0], VLAN: 9}, switches.Want{Port: "nowhere", VLAN: 1}, switches.Want{Port: p[1], VLAN: switches.MaxVLAN + 1}, switches.Want{Port: p[0], VLAN: 9})
	e, ok := err.(*muster.Error) //nolint:errorlint // it is not wrapped
	if !ok || e.Code != muster.ENotFound || len(e.Problems) != 3 {
		t.Fatalf("three faults: %v", err)
	}
	if err := r.Switch().Set(ctx(t), switches.Want{Port: p[0], VLAN: 0}); muster.CodeOf(err) != muster.EInvalid {
		t.Fatalf("network 0: %v", err)
	}
	if _, err := r.Switch().Ports(ctx(t), "nowhere"); muster.CodeOf(err) != muster.ENotFound {
		t.Fatalf("a port that is not there: %v", err)
	}
	after, err := r.Switch().Ports(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range before {
		if before[i].Want != after[i].Want {
			t.Fatalf("%v became %v", before[i].Want, after[i].Want)
		}
	}
}

func addresses(t *testing.T, r Rig) {
	p := r.Ports()
	set(t, r, switches.Want{Port: p[0], VLAN: 20}, switches.Want{Port: p[1], VLAN: 20}, switches.Want{Port: p[2], VLAN: 20})
	hears(t, r, 0, nil, p[1], p[2])
	if got := where(t, r, 0); got.Port != p[0] || got.VLAN != 20 || got.Age > time.Minute {
		t.Fatalf("learned %+v", got)
	}
	hears(t, r, 1, mac(0), p[0]) // only where it is
	set(t, r, switches.Want{Port: p[0], VLAN: 20, Closed: true})
	if got := where(t, r, 0); got.Port != "" {
		t.Fatalf("still known behind a closed port: %+v", got)
	}
}

// where is what the switch has learned of the n-th address.
func where(t *testing.T, r Rig, n int) switches.Address {
	t.Helper()
	list, err := r.Switch().Addresses(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if bytes.Equal(a.MAC, mac(n)) {
			return a
		}
	}
	return switches.Address{}
}

func links(t *testing.T, r Rig) {
	p := r.Ports()
	set(t, r, switches.Want{Port: p[0], VLAN: 3})
	want := func(link bool) {
		t.Helper()
		end := time.Now().Add(10 * time.Second)
		for {
			ports, err := r.Switch().Ports(ctx(t), p[0])
			if err != nil {
				t.Fatal(err)
			}
			if ports[0].Link == link {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("link is %v", ports[0].Link)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	want(true)
	r.Unplug(t, p[0])
	want(false)
	r.Plug(t, p[0])
	want(true)
}

func counters(t *testing.T, r Rig) {
	p := r.Ports()
	set(t, r, switches.Want{Port: p[0], VLAN: 4}, switches.Want{Port: p[1], VLAN: 4})
	read := func() []switches.Port {
		ports, err := r.Switch().Ports(ctx(t), p[0], p[1])
		if err != nil {
			t.Fatal(err)
		}
		return ports
	}
	before := read()
	const frames = 5
	for range frames {
		hears(t, r, 0, nil, p[1])
	}
	after := read()
	size := uint64(len(frame(mac(0), nil)))
	if in := after[0].In.Bytes - before[0].In.Bytes; in < frames*size {
		t.Errorf("%d bytes came in, not %d", in, frames*size)
	}
	if out := after[1].Out.Frames - before[1].Out.Frames; out < frames {
		t.Errorf("%d frames left, not %d", out, frames)
	}
}

func restarted(t *testing.T, r Rig) {
	restart := r.Restart()
	if restart == nil {
		t.Skip("it cannot be restarted")
	}
	p := r.Ports()
	wants := []switches.Want{{Port: p[0], VLAN: 8}, {Port: p[1], VLAN: 8, Closed: true}, {Port: p[2], VLAN: 8, Isolated: true}, {Port: p[3], VLAN: 9}}
	set(t, r, wants...)
	restart(t)
	ports, err := r.Switch().Ports(ctx(t), p...)
	if err != nil {
		t.Fatal(err)
	}
	if err := switches.Differ(ports, wants); err != nil {
		t.Fatal(err)
	}
	hears(t, r, 0, nil, p[2])
	hears(t, r, 1, nil)
}

func batch(t *testing.T, r Rig) {
	var wants []switches.Want
	for i, p := range r.Ports() {
		wants = append(wants, switches.Want{Port: p, VLAN: 30 + i%2})
	}
	set(t, r, wants...)
	ports, err := r.Switch().Ports(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(ports, func(a, b switches.Port) int { return bytes.Compare([]byte(a.Port), []byte(b.Port)) }) {
		t.Errorf("not sorted: %v", ports)
	}
}
