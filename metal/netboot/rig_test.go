package netboot_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
	"github.com/muster-hpc/muster/metal/netboot/httpboot"
)

// orders is a Directory in memory.
type orders struct {
	mu       sync.Mutex
	verdicts map[netboot.MAC]netboot.Verdict
	boots    map[string]netboot.Boot
	asked    map[netboot.MAC]netboot.Request
}

func (o *orders) Decide(r *netboot.Request) netboot.Verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked[r.MAC] = *r
	return o.verdicts[r.MAC] // not there: forbidden
}

func (o *orders) Holds(netboot.MAC) bool { return false }

func (o *orders) Boot(number string) (netboot.Boot, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b, ok := o.boots[number]
	return b, ok
}

func (o *orders) set(m netboot.MAC, v netboot.Verdict) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.verdicts[m] = v
}

// site is a boot service at one end of a cable, in the tests' namespace, and a
// namespace for machines at the other.
type site struct {
	seen atomic.Int64 // times a machine itself asked for something of its boot
	*netboot.Service
	t      testing.TB
	orders *orders
	config netboot.Config
	dir    string
	netns  int    // process whose namespace is the machines'
	host   string // the service's end of the wire
	wire   string // the machines' end
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 || os.Getenv("MUSTER_NETBOOT_NETNS") != "1" {
		t.Skip("needs root, to make network namespaces")
	}
}

func command(t testing.TB, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// in runs a program as a machine would; its output and whether it succeeded.
func (s *site) in(words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	words = append([]string{"-t", strconv.Itoa(s.netns), "-n"}, words...)
	out, err := exec.CommandContext(ctx, "nsenter", words...).CombinedOutput()
	return string(out), err
}

func (s *site) must(words ...string) string {
	s.t.Helper()
	out, err := s.in(words...)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return out
}

// need skips when a program is not installed.
func need(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("needs " + program)
	}
}

// newSite makes a network 10.n.0.0/16 with the service at 10.n.0.1. n must be of
// the test alone.
func newSite(t testing.TB, n int, change ...func(*netboot.Config)) *site {
	t.Helper()
	needRoot(t)
	need(t, "nsenter")
	s := &site{t: t, wire: fmt.Sprint("m", n), dir: t.TempDir(), orders: &orders{
		verdicts: map[netboot.MAC]netboot.Verdict{}, boots: map[string]netboot.Boot{}, asked: map[netboot.MAC]netboot.Request{},
	}}
	holder := exec.Command("sleep", "infinity")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { holder.Process.Kill(); holder.Wait() })
	s.netns = holder.Process.Pid
	host := fmt.Sprint("s", n)
	s.host = host
	command(t, "ip", "link", "add", host, "type", "veth", "peer", "name", s.wire, "netns", strconv.Itoa(s.netns))
	t.Cleanup(func() { exec.Command("ip", "link", "del", host).Run() })
	command(t, "ip", "addr", "add", fmt.Sprintf("10.%d.0.1/16", n), "dev", host)
	command(t, "ip", "link", "set", host, "up")
	s.must("ip", "link", "set", s.wire, "up")
	s.must("ip", "link", "set", "lo", "up")

	loaders := filepath.Join(s.dir, "ipxe")
	if err := os.Mkdir(loaders, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"undionly.kpxe": 70_001, "snponly.efi": 170_000} {
		if err := os.WriteFile(filepath.Join(loaders, name), bytes.Repeat([]byte(name), size/len(name)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := netip.AddrFrom4([4]byte{10, byte(n), 0, 1})
	s.config = netboot.Config{
		Interface: host, Address: a, LoaderDir: loaders, Directory: s.orders, Clock: muster.SystemClock{}, Advertise: true,
		Prefix: netip.MustParsePrefix("fd00:0:0:1::/64"),
		Networks: []netboot.Network{{
			Prefix: netip.PrefixFrom(a, 16), Lease: time.Hour,
			Ranges: []dhcp.Range{{First: netip.AddrFrom4([4]byte{10, byte(n), 16, 1}), Last: netip.AddrFrom4([4]byte{10, byte(n), 31, 254})}},
		}},
	}
	for _, f := range change {
		f(&s.config)
	}
	service, err := netboot.Open(s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.Service = service
	ctx, cancel := context.WithCancel(context.Background())
	up, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- service.Run(ctx, func() { close(up) }) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the service ended: %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("the service does not end")
		}
	})
	select {
	case <-up:
	case err := <-done:
		done <- err
		t.Fatal(err)
	case <-time.After(2 * time.Minute):
		t.Fatal("the service does not come up")
	}
	return s
}

// mac is the address of the machines' end of the cable.
func (s *site) mac() netboot.MAC {
	s.t.Helper()
	words := strings.Fields(s.must("ip", "-o", "link", "show", s.wire))
	for i, w := range words {
		if w == "link/ether" {
			m, err := dhcp.ParseMAC(words[i+1])
			if err != nil {
				s.t.Fatal(err)
			}
			return m
		}
	}
	s.t.Fatal("no MAC")
	return netboot.MAC{}
}

// order has a machine boot: known, with a kernel of so many bytes.
func (s *site) order(number string, size int, macs ...netboot.MAC) {
	s.t.Helper()
	file := func(name string, size int) string {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path, bytes.Repeat([]byte("kernel, "), size/8), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return path
	}
	b := netboot.Boot{MACs: macs, Seen: func() { s.seen.Add(1) }, Boot: httpboot.Boot{
		Number: number, Server: "https://10.0.0.1:7700", CA: strings.Repeat("ab", 32),
		Kernel: []string{file("kernel", size)}, Initramfs: []string{file("a.cpio", size), file("b.cpio", size)},
	}}
	s.orders.mu.Lock()
	s.orders.boots[number] = b
	s.orders.mu.Unlock()
	for _, m := range macs {
		s.orders.set(m, netboot.Verdict{Standing: dhcp.Known, Boot: number})
	}
}

// story is what the operator is told of a machine.
func (s *site) story(m netboot.MAC) string {
	seen, _ := s.Machine(m)
	var b strings.Builder
	for _, e := range seen.Events {
		fmt.Fprintf(&b, "%s %s %s (%d)\n", e.Stage, e.Address, e.Text, e.Times)
	}
	return b.String()
}
