package netboot_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/executable"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
)

// second makes another namespace, joined to the machines' one by a cable from a to b.
func (s *site) second(a, b string) *site {
	s.t.Helper()
	holder := exec.Command("sleep", "infinity")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { holder.Process.Kill(); holder.Wait() })
	pid := strconv.Itoa(holder.Process.Pid)
	s.must("ip", "link", "add", a, "type", "veth", "peer", "name", b, "netns", pid)
	s.must("ip", "link", "set", a, "up")
	command(s.t, "nsenter", "-t", pid, "-n", "ip", "link", "set", b, "up")
	return &site{t: s.t, netns: holder.Process.Pid, wire: b, dir: s.dir, orders: s.orders, Service: s.Service}
}

// dnsmasq runs in the machines' namespace until the test ends.
func (s *site) dnsmasq(args ...string) {
	s.t.Helper()
	need(s.t, "dnsmasq")
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(s.netns), "-n", "dnsmasq", "-k", "--conf-file=/dev/null", "--port=0", "--pid-file=", "--user=root", "--no-ping", "--dhcp-leasefile=" + filepath.Join(s.dir, "dnsmasq")}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 100 {
		if out, _ := s.in("ss", "-H", "-ulnp", "sport = :67"); strings.Contains(out, "dnsmasq") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatal("dnsmasq does not start")
}

// script is what busybox's udhcpc runs, and says what it was told.
func (s *site) script() string {
	path := filepath.Join(s.dir, "said")
	text := "#!/bin/sh\n[ \"$1\" = bound ] || exit 0\nip addr replace $ip/16 dev $interface\necho \"bound=$ip file=$boot_file router=$router server=$serverid\"\n"
	if err := executable.Write(path, []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// TestRelayOfOthers: machines behind a relay, which is dnsmasq, get addresses of
// their own network.
func TestRelayOfOthers(t *testing.T) {
	t.Parallel()
	need(t, "busybox")
	s := newSite(t, 111, func(c *netboot.Config) {
		c.Networks = append(c.Networks, netboot.Network{
			Prefix: netip.MustParsePrefix("10.112.0.0/16"), Lease: time.Hour, Routers: []netip.Addr{netip.MustParseAddr("10.112.0.1")},
			Ranges: []dhcp.Range{{First: netip.MustParseAddr("10.112.16.1"), Last: netip.MustParseAddr("10.112.16.99")}},
			Relays: []netip.Addr{netip.MustParseAddr("10.112.0.1"), netip.MustParseAddr("10.111.0.2")},
		})
	})
	other := s.second("relay0", "machine0")
	machine := other.in
	s.must("ip", "addr", "add", "10.111.0.2/16", "dev", s.wire)
	s.must("ip", "addr", "add", "10.112.0.1/16", "dev", "relay0")
	s.must("sysctl", "-qw", "net.ipv4.ip_forward=1")
	command(t, "ip", "route", "add", "10.112.0.0/16", "via", "10.111.0.2")
	s.dnsmasq("--dhcp-relay=10.112.0.1,10.111.0.1")
	m := other.mac()
	s.orders.set(m, netboot.Verdict{Standing: dhcp.Known, Boot: "b1a2"})
	out, err := machine("busybox", "udhcpc", "-f", "-q", "-n", "-t", "5", "-T", "1", "-i", "machine0", "-s", s.script(), "-V", "PXEClient", "-x", "0x5d:0007")
	if err != nil || !strings.Contains(out, "bound=10.112.16.1 file=snponly.efi router=10.112.0.1") {
		t.Fatalf("%v %s\n%s", err, out, s.story(m))
	}
	s.orders.mu.Lock()
	e := s.orders.asked[m].Evidence
	s.orders.mu.Unlock()
	if e.Relay.String() != "10.112.0.1" || !e.Trusted {
		t.Errorf("evidence %+v", e)
	}
	// Over the relay it loads what it was told to.
	need(t, "curl")
	if out, err := machine("ip", "route", "add", "default", "via", "10.112.0.1"); err != nil {
		t.Fatal(out)
	}
	if out, err := machine("curl", "-sS", "-m", "10", "--tftp-blksize", "1024", "-o", "/dev/null", "-w", "%{size_download}", "tftp://10.111.0.1/snponly.efi"); err != nil || !strings.HasPrefix(out, "169") && !strings.HasPrefix(out, "170") {
		t.Errorf("%v %s", err, out)
	}
}

// TestBesideTheSitesServer: dnsmasq lends the addresses, this service names the
// loader, and knows by what it hears who has which address.
func TestBesideTheSitesServer(t *testing.T) {
	t.Parallel()
	need(t, "busybox")
	s := newSite(t, 113, func(c *netboot.Config) { c.Mode = dhcp.Proxy })
	// The machines' end becomes a bridge with the site's server and a machine.
	other := s.second("port0", "machine0")
	machine := other.in
	s.must("ip", "link", "add", "lan", "type", "bridge")
	s.must("ip", "link", "set", s.wire, "master", "lan")
	s.must("ip", "link", "set", "port0", "master", "lan")
	s.must("ip", "addr", "add", "10.113.0.2/16", "dev", "lan")
	s.must("ip", "link", "set", "lan", "up")
	s.dnsmasq("--interface=lan", "--bind-interfaces", "--dhcp-authoritative", "--dhcp-range=10.113.16.1,10.113.16.99,255.255.0.0,1h")
	m := other.mac()
	s.order("b1a2", 80_000, m)
	// An operating system: this service says nothing, and listens.
	out, err := machine("busybox", "udhcpc", "-f", "-q", "-n", "-t", "5", "-T", "1", "-i", "machine0", "-s", s.script())
	if err != nil || !strings.Contains(out, "bound=10.113.16.") || !strings.Contains(out, "server=10.113.0.2") {
		t.Fatalf("%v %s\n%s", err, out, s.story(m))
	}
	_, rest, _ := strings.Cut(out, "bound=")
	a := netip.MustParseAddr(strings.Fields(rest)[0])
	if got, ok := s.Owner(a); !ok || got != m {
		t.Errorf("%v belongs to %v, %v", a, got, ok)
	}
	if s.story(m) != "" || len(s.Leases()) != 0 {
		t.Errorf("story: %s", s.story(m))
	}
	need(t, "curl")
	if out, err := machine("curl", "-sS", "-m", "5", fmt.Sprint("http://10.113.0.1:", netboot.HTTPPort, "/boot/b1a2/script")); err != nil || !strings.HasPrefix(out, "#!ipxe") {
		t.Errorf("%v %s", err, out)
	}
	other.proxied("machine0")
}

// answer is what one that asks beside the site's server was told.
type answer struct {
	offered, acked string
	err            error
}

// proxied has a BIOS and a UEFI, in frames of their own, hear the loader from this
// service between the offers of the site's server.
func (s *site) proxied(card string) {
	s.t.Helper()
	try := func(arch byte, mac netboot.MAC) answer {
		e, err := s.ether(card)
		if err != nil {
			return answer{err: err}
		}
		go e.read()
		return newSim(e, mac).beside(arch)
	}
	s.order("b1a2", 80_000, simMAC(1), simMAC(2))
	if got := try(0, simMAC(1)); got.err != nil || got.offered != "undionly.kpxe" {
		s.t.Errorf("BIOS: %+v", got)
	}
	if got := try(7, simMAC(2)); got.err != nil || got.offered != "" || got.acked != "snponly.efi" {
		s.t.Errorf("UEFI: %+v\n%s", got, s.story(simMAC(2)))
	}
}

// ether opens a card in the machines' namespace. The thread goes there and comes
// back: were it to end, the kernel would kill what it started.
func (s *site) ether(card string) (*ether, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer home.Close()
	there, err := os.Open(fmt.Sprint("/proc/", s.netns, "/ns/net"))
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	defer func() {
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			panic(err) // no test could go on in the wrong namespace
		}
	}()
	return openEther(card)
}
