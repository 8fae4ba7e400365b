package network_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider/local/network"
)

// newNS makes a network namespace without a name, with lo up. It stands for a
// machine or for the host.
func newNS(t *testing.T) *os.File {
	t.Helper()
	type result struct {
		f   *os.File
		err error
	}
	c := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			c <- result{nil, err}
			return
		}
		f, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		c <- result{f, err}
	}()
	r := <-c
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() { _ = r.f.Close() })
	inside(t, r.f, func() error {
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		return err
	})
	return r.f
}

// inside runs f on a thread inside ns.
func inside(t *testing.T, ns *os.File, f func() error) {
	t.Helper()
	c := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = f()
		}
		c <- err
	}()
	if err := <-c; err != nil {
		t.Helper()
		t.Error(err)
	}
}

func root(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed")
	}
	t.Parallel()
}

func rack(t *testing.T, host *os.File) *network.Rack {
	t.Helper()
	name := "muster-n" + muster.RandomID(6)
	r, err := network.OpenAt(t.Context(), name, host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := network.Delete(name); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat("/run/netns/" + name); err == nil {
			t.Error("the namespace is still there")
		}
	})
	return r
}

// machine links a new namespace to the rack and sets it up as a machine does.
func machine(t *testing.T, r *network.Rack, index int, msg string) *os.File {
	t.Helper()
	ns := newNS(t)
	if err := r.AddMachine(index, ns); err != nil {
		t.Fatal(err)
	}
	addr, err := network.ManagementAddress(index)
	if err != nil {
		t.Fatal(err)
	}
	if msg != "" {
		if err := r.PlugMachine(network.Plug{Machine: index, Bridge: index / 10, MTU: 9000}, ns); err != nil {
			t.Fatal(err)
		}
	}
	inside(t, ns, func() error {
		if err := address("mgmt0", addr.String()+"/32"); err != nil {
			return err
		}
		if msg != "" {
			if err := address("msg0", msg); err != nil {
				return err
			}
		}
		l, err := netlink.LinkByName("mgmt0")
		if err != nil {
			return err
		}
		dst := &net.IPNet{IP: network.Gateway().AsSlice(), Mask: net.CIDRMask(32, 32)}
		if err := netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK}); err != nil {
			return err
		}
		return netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: network.Gateway().AsSlice()})
	})
	return ns
}

func address(link, text string) error {
	l, err := netlink.LinkByName(link)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(text)
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(l, a); err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

// serve greets everybody on a port inside ns until the test ends.
func serve(t *testing.T, ns *os.File, addr string) {
	t.Helper()
	var ln net.Listener
	inside(t, ns, func() error {
		var err error
		ln, err = (&net.ListenConfig{}).Listen(context.WithoutCancel(t.Context()), "tcp4", addr)
		return err
	})
	greet(t, ln)
}

func greet(t *testing.T, ln net.Listener) {
	t.Helper()
	if ln == nil {
		t.FailNow()
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintln(c, c.RemoteAddr())
			_ = c.Close()
		}
	}()
}

// reach connects from inside ns and returns the greeting.
func reach(t *testing.T, ns *os.File, from, to string) (greeting string, err error) {
	t.Helper()
	inside(t, ns, func() error {
		d := net.Dialer{Timeout: 400 * time.Millisecond}
		if from != "" {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
		}
		var c net.Conn
		if c, err = d.DialContext(context.WithoutCancel(t.Context()), "tcp4", to); err != nil {
			return nil
		}
		defer func() { _ = c.Close() }()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		greeting, err = bufio.NewReader(c).ReadString('\n')
		greeting = strings.TrimSpace(greeting)
		return nil
	})
	return greeting, err
}

// reachSoon is reach for what must work: a wire takes its time on a busy host.
func reachSoon(t *testing.T, ns *os.File, to string) (greeting string, err error) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if greeting, err = reach(t, ns, "", to); err == nil {
			break
		}
	}
	return greeting, err
}

func TestRackKeepsApart(t *testing.T) {
	root(t)
	host := newNS(t)
	serve(t, host, "0.0.0.0:22")
	r := rack(t, host)
	for i, c := range []string{"c-a", "c-b"} {
		if err := r.AddBridge(i, c); err != nil {
			t.Fatal(err)
		}
	}
	a1 := machine(t, r, 0, "10.128.0.1/20")
	a2 := machine(t, r, 1, "10.128.0.2/20")
	b1 := machine(t, r, 10, "10.128.0.3/20") // other cluster, and it even chose a's subnet
	for _, ns := range []*os.File{a1, a2, b1} {
		serve(t, ns, "0.0.0.0:22")
		serve(t, ns, "0.0.0.0:80")
	}
	agent, err := r.Listen(t.Context(), netip.AddrPortFrom(network.Gateway(), network.AgentPort))
	if err != nil {
		t.Fatal(err)
	}
	greet(t, agent)
	proxy, err := r.Listen(t.Context(), netip.AddrPortFrom(network.Gateway(), network.ProxyPort))
	if err != nil {
		t.Fatal(err)
	}
	greet(t, proxy)
	other, err := r.Listen(t.Context(), netip.AddrPortFrom(network.Gateway(), 22))
	if err != nil {
		t.Fatal(err)
	}
	greet(t, other)

	yes := []struct {
		ns *os.File
		to string
	}{{a1, "10.90.0.1:7700"}, {b1, "10.90.0.1:7700"}, {a1, "10.128.0.2:80"}, {a2, "10.128.0.1:22"}}
	for _, c := range yes {
		if _, err := reachSoon(t, c.ns, c.to); err != nil {
			t.Errorf("cannot reach %s: %v", c.to, err)
		}
	}
	no := []struct {
		ns       *os.File
		from, to string
	}{
		{a1, "", "10.128.0.3:80"}, {b1, "", "10.128.0.1:80"}, {b1, "", "10.128.0.2:22"}, // other cluster's messages
		{a1, "", "10.90.0.12:22"}, {a1, "", "10.90.0.3:22"}, // other machines' management
		{a1, "", "10.90.0.1:22"}, {a1, "", "10.90.0.1:3128"}, // other ports of the gateway
		{a1, "", "169.254.1.1:22"},           // the host
		{b1, "10.128.0.3", "10.90.0.1:7700"}, // wrong source
	}
	for _, c := range no {
		if g, err := reach(t, c.ns, c.from, c.to); err == nil {
			t.Errorf("reached %s: %s", c.to, g)
		}
	}
	// Taking another machine's address gets no answer.
	inside(t, b1, func() error { return address("mgmt0", "10.90.0.2/32") })
	if g, err := reach(t, b1, "10.90.0.2", "10.90.0.1:7700"); err == nil {
		t.Errorf("took another's address: %s", g)
	}
	if g, err := reachSoon(t, a1, "10.90.0.1:7700"); err != nil || !strings.HasPrefix(g, "10.90.0.2:") {
		t.Errorf("the owner of the address: %s %v", g, err)
	}
	// The server reaches sshd and nothing else.
	for port, want := range map[uint16]bool{22: true, 80: false} {
		wait := 400 * time.Millisecond
		if want {
			wait = 10 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		c, err := r.Dial(ctx, netip.AddrPortFrom(netip.MustParseAddr("10.90.0.2"), port))
		cancel()
		if err == nil {
			_ = c.Close()
		}
		if (err == nil) != want {
			t.Errorf("dial port %d: %v", port, err)
		}
	}
	// A cut machine is silent.
	if err := r.CutMachine(0); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"10.90.0.1:7700", "10.128.0.2:80"} {
		if _, err := reach(t, a1, "", to); err == nil {
			t.Errorf("a cut machine reached %s", to)
		}
	}
	bridges, err := r.Bridges()
	if err != nil || len(bridges) != 2 || bridges[1] != "c-b" {
		t.Error(bridges, err)
	}
	if err := errors.Join(r.RemoveBridge("c-a"), r.RemoveBridge("c-a"), r.RemoveMachine(0), r.RemoveMachine(0)); err != nil {
		t.Error(err)
	}
	left, err := r.Machines()
	if err != nil || len(left) != 2 || !left[1] || !left[10] {
		t.Error(left, err)
	}
}

func TestRackAgain(t *testing.T) {
	root(t)
	r := rack(t, newNS(t))
	if err := r.AddBridge(3, "c-x"); err != nil {
		t.Fatal(err)
	}
	m := machine(t, r, 30, "10.128.0.1/20")
	if err := r.SetWay(t.Context(), netip.MustParseAddr("10.90.0.32"), network.WayProxy); err != nil {
		t.Fatal(err)
	}
	// Opening it a second time, as after a crash, finds all and disturbs nothing.
	r2, err := network.Open(t.Context(), r.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r2.Close() }()
	b, err := r2.Bridges()
	if err != nil || b[3] != "c-x" {
		t.Error(b, err)
	}
	ln, err := r2.Listen(t.Context(), netip.AddrPortFrom(network.Gateway(), network.ProxyPort))
	if err != nil {
		t.Fatal(err)
	}
	greet(t, ln)
	if _, err := reachSoon(t, m, "10.90.0.1:3128"); err != nil {
		t.Error("the way through the proxy was lost:", err)
	}
	if err := r2.ResetWays(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := reach(t, m, "", "10.90.0.1:3128"); err == nil {
		t.Error("the way through the proxy is still open")
	}
	// A machine that comes again takes its old link's place.
	machine(t, r2, 30, "10.128.0.1/20")
}

// TestNAT goes out through a host that is a namespace of its own, to a world
// that is another.
func TestNAT(t *testing.T) {
	root(t)
	host, world := newNS(t), newNS(t)
	inside(t, host, func() error {
		v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "w0", PeerNamespace: netlink.NsFd(int(world.Fd()))}
		if err := netlink.LinkAdd(v); err != nil {
			return err
		}
		return errors.Join(address("eth0", "198.51.100.1/24"), address("lo", "127.0.0.1/8"))
	})
	inside(t, world, func() error {
		return errors.Join(address("w0", "198.51.100.2/24"), address("w0", "192.168.7.7/24"))
	})
	inside(t, host, func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		_, n, _ := net.ParseCIDR("192.168.7.0/24")
		return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: n})
	})
	serve(t, world, "0.0.0.0:80")
	serve(t, host, "0.0.0.0:80")
	r := rack(t, host)
	m, other := machine(t, r, 0, ""), machine(t, r, 1, "")
	addr := netip.MustParseAddr("10.90.0.2")
	if err := r.SetWay(t.Context(), addr, network.WayNAT); !errors.Is(err, network.ErrNoForwarding) {
		t.Fatal("a host that does not forward:", err)
	}
	inside(t, host, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	if err := r.SetWay(t.Context(), addr, network.WayNAT); err != nil {
		t.Fatal(err)
	}
	g, err := reachSoon(t, m, "198.51.100.2:80")
	if err != nil || !strings.HasPrefix(g, "198.51.100.1:") {
		t.Errorf("to the world: %q %v", g, err)
	}
	for _, to := range []string{"192.168.7.7:80", "198.51.100.1:80", "169.254.1.1:80"} {
		if g, err := reach(t, m, "", to); err == nil {
			t.Errorf("reached %s: %s", to, g)
		}
	}
	if _, err := reach(t, other, "", "198.51.100.2:80"); err == nil {
		t.Error("a machine without a way out went out")
	}
	if err := r.SetWay(t.Context(), addr, network.WayNone); err != nil {
		t.Fatal(err)
	}
	if _, err := reach(t, m, "", "198.51.100.2:80"); err == nil {
		t.Error("the way out is still open")
	}
	inside(t, host, func() error {
		links, err := netlink.LinkList()
		if err == nil && len(links) != 2 {
			err = fmt.Errorf("links of the host: %v", links)
		}
		return err
	})
}

func TestShape(t *testing.T) {
	root(t)
	r := rack(t, newNS(t))
	if err := r.AddBridge(0, "c-s"); err != nil {
		t.Fatal(err)
	}
	if err := r.PlugMachine(network.Plug{Machine: 0, Bridge: 0, Speed: 1e9}, newNS(t)); err != nil {
		t.Fatal(err)
	}
	if err := r.PlugMachine(network.Plug{Machine: 1, Bridge: 7}, newNS(t)); err == nil {
		t.Error("plugged into a bridge that does not exist")
	}
}
