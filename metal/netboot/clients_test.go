package netboot_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster/internal/executable"
	"github.com/muster-hpc/muster/metal/netboot"
	"github.com/muster-hpc/muster/metal/netboot/dhcp"
)

// address has busybox ask for an address as firmware would, and takes it.
func (s *site) address(args ...string) string {
	s.t.Helper()
	need(s.t, "busybox")
	script := filepath.Join(s.dir, "bound")
	text := "#!/bin/sh\n[ \"$1\" = bound ] || exit 0\nip addr replace $ip/16 dev $interface\necho \"bound=$ip file=$boot_file next=$siaddr name=$hostname mtu=$mtu\"\n"
	if err := executable.Write(script, []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return s.must(append([]string{"busybox", "udhcpc", "-f", "-q", "-n", "-t", "30", "-T", "1", "-i", s.wire, "-s", script}, args...)...)
}

func TestBusyboxGetsAnAddressAndItsBoot(t *testing.T) {
	t.Parallel()
	s := newSite(t, 101)
	m := s.mac()
	s.order("b1a2c3", 80_000, m)
	out := s.address("-V", "PXEClient:Arch:00000:UNDI:002001", "-x", "0x5d:0000", "-O", "bootfile")
	if !strings.Contains(out, "bound=10.101.16.") || !strings.Contains(out, "file=undionly.kpxe next=10.101.0.1") {
		t.Fatalf("%s\n%s", out, s.story(m))
	}
	out = s.address("-V", "PXEClient:Arch:00007:UNDI:003016", "-x", "0x5d:0007", "-x", "0x4d:69505845", "-C")
	if !strings.Contains(out, "file=http://10.101.0.1:7780/boot/b1a2c3/script") {
		t.Fatalf("as iPXE: %s", out)
	}
	// What is sent to the address goes to this machine, whoever claims it.
	if out := command(t, "ip", "neigh", "show", "dev", s.config.Interface); !strings.Contains(out, "10.101.16.1 lladdr "+m.String()+" PERMANENT") {
		t.Errorf("neighbours: %s", out)
	}
	need(t, "curl")
	url := "http://10.101.0.1:7780/boot/b1a2c3/"
	if out := s.must("curl", "-sS", "-m", "5", url+"script"); !strings.HasPrefix(out, "#!ipxe\n") || !strings.Contains(out, url+"kernel initrd=initramfs") {
		t.Errorf("script: %s", out)
	}
	if out := s.must("curl", "-sS", "-m", "5", "-r", "8-15", url+"kernel"); out != "kernel, " {
		t.Errorf("range: %q", out)
	}
	if out := s.must("curl", "-sS", "-m", "5", "-I", url+"initramfs"); !strings.Contains(out, "Content-Length: 160000") {
		t.Errorf("HEAD: %s", out)
	}
	if s.seen.Load() == 0 {
		t.Error("a machine that loads its boot is not heard")
	}
	// From another address of the same network it is not there, and who asks is no sign of
	// life of the machine.
	own := s.seen.Load()
	s.must("ip", "addr", "add", "10.101.40.1/16", "dev", s.wire)
	if out := s.must("curl", "-sS", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", "--interface", "10.101.40.1", url+"script"); out != "404" {
		t.Errorf("a stranger gets %s", out)
	}
	if n := s.seen.Load() - own; n > 0 {
		t.Errorf("a stranger passes for the machine %d times", n)
	}
	for _, want := range []string{"offer 10.101.16.", "load undionly.kpxe", "ack 10.101.16.", "http 10.101.16.1 sent script"} {
		if !strings.Contains(s.story(m), want) {
			t.Errorf("%q is not in the machine's story:\n%s", want, s.story(m))
		}
	}
}

func TestForbiddenMachinesHearNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, 102)
	need(t, "busybox")
	out, err := s.in("busybox", "udhcpc", "-f", "-q", "-n", "-t", "2", "-T", "1", "-i", s.wire, "-s", "/bin/true")
	if err == nil || strings.Contains(out, "lease of") {
		t.Errorf("a forbidden machine got an address: %s", out)
	}
	if got := s.story(s.mac()); !strings.Contains(got, "refused") {
		t.Errorf("the operator is not told: %q", got)
	}
}

func TestTwoServersDoNotMix(t *testing.T) {
	t.Parallel()
	a, b := newSite(t, 103), newSite(t, 104)
	m := a.mac()
	b.orders.set(m, netboot.Verdict{Standing: dhcp.Known})
	a.orders.set(m, netboot.Verdict{Standing: dhcp.Known})
	if out := a.address(); !strings.Contains(out, "bound=10.103.16.1 ") {
		t.Errorf("%s", out)
	}
	if len(b.Machines()) != 0 {
		t.Errorf("another interface's server heard it: %v", b.Machines())
	}
}

// An interface that goes down, as when its cable is pulled or somebody sets it up anew, ends
// nothing: machines get their addresses again once it is up.
func TestAnInterfaceGoesDown(t *testing.T) {
	t.Parallel()
	s := newSite(t, 119)
	s.orders.set(s.mac(), netboot.Verdict{Standing: dhcp.Known})
	for range 2 {
		for _, state := range []string{"down", "up"} {
			if out, err := exec.Command("ip", "link", "set", s.host, state).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			time.Sleep(200 * time.Millisecond)
		}
		if out := s.address(); !strings.Contains(out, "bound=10.119.16.1 ") {
			t.Errorf("%s", out)
		}
	}
}

func TestOneServerOnAnInterface(t *testing.T) {
	t.Parallel()
	s := newSite(t, 108)
	again, err := dhcp.New(dhcp.Config{
		Interface: s.config.Interface, Address: s.config.Address, Networks: s.config.Networks, Directory: s.orders, Clock: s.config.Clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := again.Serve(ctx, nil); err == nil || !strings.Contains(err.Error(), "somebody listens for DHCP") {
		t.Errorf("a second service on one interface: %v", err)
	}
}

func TestDhclient(t *testing.T) {
	t.Parallel()
	s := newSite(t, 105)
	need(t, "dhclient")
	m := s.mac()
	s.orders.set(m, netboot.Verdict{Standing: dhcp.Known, Hostname: "n07", Address: netip.MustParseAddr("10.105.3.7")})
	lease, pid := filepath.Join(s.dir, "lease"), filepath.Join(s.dir, "pid")
	// It would stay in the foreground once it has a lease.
	bound := filepath.Join(s.dir, "bound")
	if err := executable.Write(bound, []byte("#!/bin/sh\n[ \"$reason\" != BOUND ] || kill $PPID\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, _ := s.in("timeout", "90", "dhclient", "-4", "-1", "-d", "-v", "-sf", bound, "-lf", lease, "-pf", pid, "-cf", "/dev/null", s.wire)
	if !strings.Contains(out, "DHCPACK of 10.105.3.7 from 10.105.0.1") {
		t.Errorf("%s\n%s", out, s.story(m))
	}
}

func TestRealTFTPClients(t *testing.T) {
	t.Parallel()
	s := newSite(t, 106)
	s.must("ip", "addr", "add", "10.106.50.1/16", "dev", s.wire)
	want, err := os.ReadFile(filepath.Join(s.config.LoaderDir, "undionly.kpxe"))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(s.dir, "got")
	for name, words := range map[string][]string{
		"curl":         {"curl", "-sS", "-m", "20", "-o", to, "tftp://10.106.0.1/undionly.kpxe"},
		"curl, blocks": {"curl", "-sS", "-m", "20", "--tftp-blksize", "1468", "-o", to, "tftp://10.106.0.1/undionly.kpxe"},
		"tftp-hpa":     {"tftp", "-m", "octet", "10.106.0.1", "-c", "get", "undionly.kpxe", to},
		"atftp":        {"atftp", "--option", "blksize 1428", "--option", "windowsize 8", "-g", "-r", "undionly.kpxe", "-l", to, "10.106.0.1"},
		"atftp, plain": {"atftp", "-g", "-r", "undionly.kpxe", "-l", to, "10.106.0.1"},
		"busybox":      {"busybox", "tftp", "-g", "-b", "1468", "-r", "undionly.kpxe", "-l", to, "10.106.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			need(t, words[0])
			os.Remove(to)
			out, err := s.in(words...)
			got, _ := os.ReadFile(to)
			if err != nil || string(got) != string(want) {
				t.Errorf("%d bytes of %d: %v\n%s", len(got), len(want), err, out)
			}
		})
	}
	if out, err := s.in("curl", "-sS", "-m", "5", "tftp://10.106.0.1/etc/passwd"); err == nil {
		t.Errorf("a file that is no boot loader: %s", out)
	}
}

// TestRouterSolicitation: iPXE's wait ends with one packet, and it makes nobody a
// router.
func TestRouterSolicitation(t *testing.T) {
	t.Parallel()
	s := newSite(t, 107)
	need(t, "rdisc6")
	// Until the kernel is sure of the addresses of both ends.
	sure := func(own string) bool { return own != "" && !strings.Contains(own, "tentative") }
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		own := s.must("ip", "-6", "-o", "address", "show", "dev", s.wire, "scope", "link")
		its, err := exec.Command("ip", "-6", "-o", "address", "show", "dev", s.host, "scope", "link").Output()
		if err == nil && sure(own) && sure(string(its)) {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("no addresses of the link: %q, %q, %v", own, its, err)
		}
	}
	out := s.must("rdisc6", "-n", "-1", "-r", "1", "-w", "20000", s.wire) // one solicitation, however busy the host is
	for _, want := range []string{
		`(?m)^Router lifetime +: +0 `, `(?m)^Stateful address conf\. +: +No`, `(?m)^Stateful other conf\. +: +No`,
		`(?m)^ *Prefix +: fd00:0:0:1::/64`, `(?m)Source link-layer address`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := netboot.Open(netboot.Config{Interface: "lo", Address: netip.MustParseAddr("127.0.0.1"), LoaderDir: t.TempDir(), Directory: &orders{}, Clock: clock{}})
	if err == nil || !strings.Contains(err.Error(), "no boot loader in") {
		t.Errorf("%v", err)
	}
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }
