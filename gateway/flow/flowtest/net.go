// Package flowtest has a client, a gateway and a node in network namespaces of their own, joined
// as clients, a gateway and nodes are: the gateway stands between two networks.
package flowtest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Place is a network namespace that goes with its last user.
type Place struct {
	NS *os.File
}

// Net is what a test has. Addresses are those that documents use.
type Net struct {
	Client, Gateway, Node Place
}

// Addresses in a Net.
const (
	ClientAddress  = "192.0.2.2"
	GatewayAddress = "192.0.2.1"
	NodeAddress    = "198.51.100.2"
	inner          = "198.51.100.1"
)

// New makes one, or skips the test where that needs more rights than it has.
func New(t testing.TB) *Net {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("there is no nft")
	}
	n := &Net{}
	for _, p := range []*Place{&n.Client, &n.Gateway, &n.Node} {
		if err := p.open(); err != nil {
			t.Skipf("no network namespace: %v", err)
		}
		t.Cleanup(func() { _ = p.NS.Close() })
	}
	for _, err := range []error{
		join(n.Gateway, n.Client, "clients", "eth0", GatewayAddress+"/24", ClientAddress+"/24"),
		join(n.Gateway, n.Node, "nodes", "eth0", inner+"/24", NodeAddress+"/24"),
		n.Node.route(inner),
		n.Client.route(GatewayAddress),
		n.Gateway.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644) }),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func (p *Place) open() error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with this
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			p.NS, err = os.Open("/proc/thread-self/ns/net")
		}
		result <- err
	}()
	return <-result
}

// Do runs f on a thread inside.
func (p Place) Do(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with this
		if err := unix.Setns(int(p.NS.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- f()
	}()
	return <-result
}

// Dial connects from inside, from a port of its own choice where from names one.
func (p Place) Dial(ctx context.Context, from, to string) (c net.Conn, err error) {
	err = p.Do(func() error {
		d := net.Dialer{}
		if from != "" {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from))
		}
		c, err = d.DialContext(ctx, "tcp4", to)
		return err
	})
	return c, err
}

// Listen listens inside.
func (p Place) Listen(at string) (l net.Listener, err error) {
	err = p.Do(func() error {
		l, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp4", at)
		return err
	})
	return l, err
}

// Run runs a program inside.
func (p Place) Run(name string, args ...string) (out string, err error) {
	err = p.Do(func() error {
		b, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput()
		out = string(b)
		if err != nil {
			err = fmt.Errorf("%s %v: %w: %s", name, args, err, b)
		}
		return err
	})
	return out, err
}

func (p Place) handle() (*netlink.Handle, error) {
	return netlink.NewHandleAt(netns.NsHandle(p.NS.Fd()), unix.NETLINK_ROUTE)
}

// join makes a wire between two places.
func join(a, b Place, nameA, nameB, addressA, addressB string) error {
	h, err := a.handle()
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = nameA
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(int(b.NS.Fd()))}); err != nil {
		return err
	}
	if err := a.up(nameA, addressA); err != nil {
		return err
	}
	return b.up(nameB, addressB)
}

func (p Place) up(name, address string) error {
	h, err := p.handle()
	if err != nil {
		return err
	}
	defer h.Close()
	if lo, err := h.LinkByName("lo"); err == nil {
		_ = h.LinkSetUp(lo)
	}
	l, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	at, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	if err := h.AddrAdd(l, at); err != nil {
		return err
	}
	return h.LinkSetUp(l)
}

func (p Place) route(via string) error {
	h, err := p.handle()
	if err != nil {
		return err
	}
	defer h.Close()
	return h.RouteAdd(&netlink.Route{Gw: net.ParseIP(via)})
}
