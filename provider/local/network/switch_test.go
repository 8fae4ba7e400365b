package network_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/muster-hpc/muster/provider/local/network"
)

// plug puts a machine into a network behind a switch. Machine i has the address 10.9.0.(i+1).
func plug(t *testing.T, r *network.Rack, i, bridge int, at string) *os.File {
	t.Helper()
	ns := newNS(t)
	if err := r.PlugMachine(network.Plug{Machine: i, Bridge: bridge, Switch: at, MTU: 9000}, ns); err != nil {
		t.Fatal(err)
	}
	a := netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)})
	inside(t, ns, func() error { return address("msg0", a.String()+"/24") })
	return ns
}

// devices are those in the rack that are of switches: their bridges, links and queues.
func devices(t *testing.T, r *network.Rack) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := r.Do(func() error {
		list, err := netlink.LinkList()
		for _, l := range list {
			if strings.Contains(l.Attrs().Name, ".") {
				out[l.Attrs().Name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Two leaves are joined by a link that is held to a rate: machines of one leaf do not notice, and those of all
// clusters that send through the link share it. Clusters stay apart all the same.
func TestLeaves(t *testing.T) {
	root(t)
	r := rack(t, newNS(t))
	const rate = 100e6
	leaves := []network.Switch{{Name: "A", Rate: rate}, {Name: "B"}}
	if err := r.SetSwitches(leaves); err != nil {
		t.Fatal(err)
	}
	for i, c := range []string{"c-a", "c-b"} {
		if err := r.AddBridge(i, c); err != nil {
			t.Fatal(err)
		}
	}
	var ns []*os.File
	for i, at := range []string{"A", "A", "B", "B"} { // 10.9.0.1 to .4 in one cluster
		ns = append(ns, plug(t, r, i, 0, at))
	}
	for i, at := range []string{"A", "B"} { // .5 and .6 in the other
		ns = append(ns, plug(t, r, i+4, 1, at))
	}
	if got, err := r.LinkRate("A"); err != nil || got != rate {
		t.Fatalf("held to %d: %v", got, err)
	}
	if got := sent(t, ns, [][2]int{{0, 1}}); got < 2*rate {
		t.Errorf("within a leaf: %.0f b/s", got)
	}
	for name, pairs := range map[string][][2]int{
		"up": {{0, 2}}, "down": {{2, 0}}, "of one cluster": {{0, 2}, {1, 3}}, "of two clusters": {{0, 2}, {4, 5}},
	} {
		if got := sent(t, ns, pairs); got > 1.15*rate || got == 0 {
			t.Errorf("%s: %.0f b/s", name, got)
		} else {
			t.Logf("%s: %.0f Mb/s", name, got/1e6)
		}
	}
	for _, n := range ns {
		serve(t, n, "0.0.0.0:80")
	}
	for _, to := range []string{"10.9.0.5:80", "10.9.0.6:80"} {
		if g, err := reach(t, ns[0], "", to); err == nil {
			t.Errorf("reached another cluster: %s", g)
		}
	}
	// A switch without power joins nobody, and does again when it has.
	if err := r.CutSwitch("B", false); err != nil {
		t.Fatal(err)
	}
	if _, err := reach(t, ns[2], "", "10.9.0.4:80"); err == nil {
		t.Error("a switch is off and joins")
	}
	if _, err := reachSoon(t, ns[0], "10.9.0.2:80"); err != nil {
		t.Error(err)
	}
	if err := r.CutSwitch("B", true); err != nil {
		t.Fatal(err)
	}
	if _, err := reachSoon(t, ns[0], "10.9.0.4:80"); err != nil {
		t.Error(err)
	}

	// Another rate counts for clusters that run; a server that has no switches changes nothing for them.
	leaves[0].Rate = 3 * rate
	if err := r.SetSwitches(leaves); err != nil {
		t.Fatal(err)
	}
	if got, err := r.LinkRate("A"); err != nil || got != 3*rate {
		t.Errorf("held to %d: %v", got, err)
	}
	if err := r.SetSwitches(nil); err != nil {
		t.Fatal(err)
	}
	if got, err := r.LinkRate("A"); err != nil || got != 3*rate {
		t.Errorf("held to %d: %v", got, err)
	}
	if err := r.RemoveBridge("c-a"); err != nil {
		t.Fatal(err)
	}
	for d := range devices(t, r) {
		if strings.HasPrefix(d, "b0.") || strings.HasPrefix(d, "t0.") || strings.HasPrefix(d, "s0.") {
			t.Errorf("%s is left", d)
		}
	}
	if err := r.RemoveBridge("c-b"); err != nil {
		t.Fatal(err)
	}
	if err := r.SetSwitches(nil); err != nil {
		t.Fatal(err)
	}
	if left := devices(t, r); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What a server left half made is made to the end by the next one.
func TestLeavesAgain(t *testing.T) {
	root(t)
	r := rack(t, newNS(t))
	leaves := []network.Switch{{Name: "X", Rate: 100e6}, {Name: "A", Up: "X"}, {Name: "B", Up: "X"}}
	if err := r.SetSwitches(leaves); err != nil {
		t.Fatal(err)
	}
	if err := r.AddBridge(0, "c-a"); err != nil {
		t.Fatal(err)
	}
	ns := []*os.File{plug(t, r, 0, 0, "A"), plug(t, r, 1, 0, "B")}
	serve(t, ns[1], "0.0.0.0:80")
	if _, err := reachSoon(t, ns[0], "10.9.0.2:80"); err != nil {
		t.Fatal(err)
	}
	// A trunk of which nothing says that it was made to the end.
	if err := r.Do(func() error {
		list, err := netlink.LinkList()
		for _, l := range list {
			if strings.HasPrefix(l.Attrs().Name, "t0.") {
				if err := netlink.LinkSetAlias(l, ""); err != nil {
					return err
				}
				if err := netlink.LinkSetDown(l); err != nil {
					return err
				}
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for i, at := range []string{"A", "B"} { // machines that boot again
		ns[i] = plug(t, r, i, 0, at)
	}
	serve(t, ns[1], "0.0.0.0:80")
	if _, err := reachSoon(t, ns[0], "10.9.0.2:80"); err != nil {
		t.Error(err)
	}
	if err := r.PlugMachine(network.Plug{Machine: 7, Bridge: 0, Switch: "C"}, newNS(t)); err == nil {
		t.Error("a machine behind a switch that there is not")
	}
	if err := r.SetSwitches([]network.Switch{{Name: "A", Up: "Y"}}); err == nil {
		t.Error("a switch that is joined to none")
	}
}

// A link has its delay each way, and its rate. It stands still without a program that carries its frames,
// and goes on with the next one.
func TestDelay(t *testing.T) {
	root(t)
	host := newNS(t)
	name := rack(t, host).Name()
	r, err := network.OpenAt(t.Context(), name, host)
	if err != nil {
		t.Fatal(err)
	}
	const rate, delay = 100e6, 40 * time.Millisecond
	leaves := []network.Switch{{Name: "A", Rate: rate, Delay: delay}, {Name: "B"}}
	if err := r.SetSwitches(leaves); err != nil {
		t.Fatal(err)
	}
	if err := r.AddBridge(0, "c-a"); err != nil {
		t.Fatal(err)
	}
	ns := []*os.File{plug(t, r, 0, 0, "A"), plug(t, r, 1, 0, "A"), plug(t, r, 2, 0, "B")}
	for _, n := range ns {
		serve(t, n, "0.0.0.0:80")
	}
	// quickest of some, so that a busy host does not count
	quickest := func(to string) time.Duration {
		least := time.Hour
		for range 5 {
			began := time.Now()
			if _, err := reachSoon(t, ns[0], to); err != nil {
				t.Fatal(err)
			}
			least = min(least, time.Since(began))
		}
		return least
	}
	// Connecting and reading take two ways there and back, after the first question for an address.
	if got := quickest("10.9.0.3:80"); got < 4*delay {
		t.Errorf("through the link: %v", got)
	} else {
		t.Logf("through the link: %v", got)
	}
	if got := quickest("10.9.0.2:80"); got >= 4*delay {
		t.Errorf("within the leaf: %v", got)
	}
	if got := sent(t, ns, [][2]int{{0, 2}}); got > 1.15*rate || got == 0 {
		t.Errorf("%.0f b/s", got)
	} else {
		t.Logf("%.0f Mb/s", got/1e6)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := reach(t, ns[0], "", "10.9.0.3:80"); err == nil {
		t.Error("frames pass and nobody carries them")
	}
	again, err := network.OpenAt(t.Context(), name, host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if err := again.SetSwitches(leaves); err != nil {
		t.Fatal(err)
	}
	if got := quickest("10.9.0.3:80"); got < 4*delay {
		t.Errorf("with the next program: %v", got)
	}
	if err := again.RemoveBridge("c-a"); err != nil {
		t.Fatal(err)
	}
	if left := devices(t, again); left["t0."] || len(left) > 2 { // queues
		t.Errorf("left: %v", left)
	}
}
