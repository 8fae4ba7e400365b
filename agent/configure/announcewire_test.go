package configure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/wire"
)

// Who spoke with the machine before learns where its address is now, though the
// first word is said before the network carries it.
func TestAnnouncementIsUnderstood(t *testing.T) {
	t.Parallel()
	const address, before = "10.128.0.10", "02:00:00:00:00:99"
	w := newWire(t)
	w.believe(t, address, before)

	clock := newWordClock()
	c := New(Options{Root: t.TempDir(), Clock: clock})
	cfg := &wire.NodeConfig{Address: address + "/24", Interface: wireName}
	done := w.inside(t, func(ctx context.Context) { c.announce(ctx, cfg) })
	clock.wait(t)
	clock.ring(t) // the first word
	clock.wait(t) // it is out, and the cable leads nowhere
	if got := w.believes(t, address); got != before {
		t.Fatalf("the neighbour knows already that %s is at %s: this proves nothing", address, got)
	}
	w.join(t)
	clock.ring(t)
	for range len(announcePauses()) - 2 {
		clock.wait(t)
		clock.ring(t)
	}
	<-done
	w.learns(t, address)
}

// What was not said to the end is said again, and what was is not.
func TestAnnouncementIsMadeOnce(t *testing.T) {
	t.Parallel()
	clock := newWordClock()
	c := New(Options{Root: t.TempDir(), Clock: clock})
	cfg := &wire.NodeConfig{Address: "10.128.0.10/24", Interface: "nosuchlink"}
	ended, end := context.WithCancel(t.Context())
	end()
	c.announce(ended, cfg)
	clock.wait(t)
	done := make(chan struct{})
	go func() { defer close(done); c.announce(t.Context(), cfg) }()
	for range announcePauses() {
		clock.wait(t)
		clock.ring(t)
	}
	<-done
	c.announce(ended, cfg)
	if len(clock.asked) != 0 {
		t.Error("it begins again")
	}
}

// generous is how long what must come may take.
const generous = time.Minute

// wordClock is a clock that rings when the test says so.
type wordClock struct{ asked, rings chan time.Time }

func newWordClock() *wordClock {
	return &wordClock{asked: make(chan time.Time, 16), rings: make(chan time.Time)}
}

func (w *wordClock) Now() time.Time { return time.Time{} }

func (w *wordClock) After(time.Duration) <-chan time.Time {
	w.asked <- time.Time{}
	return w.rings
}

// wait waits until somebody waits for the clock.
func (w *wordClock) wait(t *testing.T) {
	t.Helper()
	select {
	case <-w.asked:
	case <-time.After(generous):
		t.Fatal("nobody waits to announce")
	}
}

func (w *wordClock) ring(t *testing.T) {
	t.Helper()
	select {
	case w.rings <- time.Time{}:
	case <-time.After(generous):
		t.Fatal("nobody waits any more")
	}
}

// wireName is the link of a machine at its cable.
const wireName = "message"

// onWire is a machine, and a neighbour with a bridge, each in a network namespace
// of its own with a cable between them. The namespaces have no names: they and
// all in them end with the test.
type onWire struct {
	machine           *os.File // its namespace
	neighbour         *netlink.Handle
	bridge, port, own netlink.Link // own is the machine's
}

func newWire(t *testing.T) *onWire {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("makes network namespaces: needs root")
	}
	at, machine := namespace(t)
	_, neighbour := namespace(t)
	w := &onWire{machine: at, neighbour: neighbour}

	// The bridge has another port, so that it carries all the time, and an address
	// of its own: if either changed, the kernel would forget its neighbours.
	spare := &netlink.Veth{LinkAttrs: named("spare"), PeerName: "other"}
	other := &netlink.Veth{LinkAttrs: named("other")}
	bridge := &netlink.Bridge{LinkAttrs: named("bridge")}
	bridge.HardwareAddr = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	for _, err := range []error{
		neighbour.LinkAdd(bridge), neighbour.LinkAdd(spare), neighbour.LinkSetMaster(spare, bridge),
		neighbour.LinkSetUp(spare), neighbour.LinkSetUp(other), neighbour.LinkSetUp(bridge), give(neighbour, bridge, "10.128.0.11/24"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.bridge = carries(t, neighbour, "bridge")

	veth := &netlink.Veth{LinkAttrs: named("port"), PeerName: wireName, PeerNamespace: netlink.NsFd(at.Fd())}
	if err := neighbour.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	own, err := machine.LinkByName(wireName)
	if err == nil {
		err = errors.Join(neighbour.LinkSetUp(veth), machine.LinkSetUp(own), give(machine, own, "10.128.0.10/24"))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.port, w.own = carries(t, neighbour, "port"), carries(t, machine, wireName)
	return w
}

func named(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

func give(h *netlink.Handle, link netlink.Link, address string) error {
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return h.AddrAdd(link, a)
}

// carries waits until a link does.
func carries(t *testing.T, h *netlink.Handle, name string) (link netlink.Link) {
	t.Helper()
	soon(t, func() (err error) {
		if link, err = h.LinkByName(name); err != nil {
			return err
		}
		if state := link.Attrs().OperState; state != netlink.OperUp {
			return fmt.Errorf("%s is %s", name, state)
		}
		return nil
	})
	return link
}

// namespace makes one; who uses it is in it only while a function runs.
func namespace(t *testing.T) (*os.File, *netlink.Handle) {
	t.Helper()
	var f *os.File
	made := make(chan error, 1)
	network.OwnThread(func() {
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			f, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
	})
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	h, err := netlink.NewHandleAt(netns.NsHandle(f.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return f, h
}

// join puts the machine's cable into the bridge.
func (w *onWire) join(t *testing.T) {
	t.Helper()
	if err := w.neighbour.LinkSetMaster(w.port, w.bridge); err != nil {
		t.Fatal(err)
	}
}

// believe gives the neighbour the entry of one that spoke with an address.
func (w *onWire) believe(t *testing.T, address, hardware string) {
	t.Helper()
	mac, err := net.ParseMAC(hardware)
	if err == nil {
		err = w.neighbour.NeighSet(&netlink.Neigh{LinkIndex: w.bridge.Attrs().Index, State: netlink.NUD_REACHABLE, IP: net.ParseIP(address), HardwareAddr: mac})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// believes reports at which hardware address the neighbour thinks that an address is.
func (w *onWire) believes(t *testing.T, address string) (hardware string) {
	t.Helper()
	soon(t, func() error {
		list, err := w.neighbour.NeighList(w.bridge.Attrs().Index, unix.AF_INET)
		hardware = "nowhere"
		for _, n := range list {
			if n.IP.Equal(net.ParseIP(address)) {
				hardware = n.HardwareAddr.String()
			}
		}
		return err // a list that changed while it was read is read again
	})
	return hardware
}

// learns waits until the neighbour sends to the machine.
func (w *onWire) learns(t *testing.T, address string) {
	t.Helper()
	soon(t, func() error {
		if got, want := w.believes(t, address), w.own.Attrs().HardwareAddr.String(); got != want {
			return fmt.Errorf("the neighbour sends to %s and not to %s", got, want)
		}
		return nil
	})
}

// inside starts f on the machine; the test does not end before f did.
func (w *onWire) inside(t *testing.T, f func(context.Context)) <-chan struct{} {
	t.Helper()
	done, entered := make(chan struct{}), make(chan error, 1)
	network.OwnThread(func() {
		defer close(done)
		err := unix.Setns(int(w.machine.Fd()), unix.CLONE_NEWNET)
		entered <- err
		if err == nil {
			f(t.Context())
		}
	})
	t.Cleanup(func() { <-done })
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	return done
}

// soon repeats what may need a while.
func soon(t *testing.T, ok func() error) {
	t.Helper()
	for deadline := time.Now().Add(generous); ; time.Sleep(10 * time.Millisecond) {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
