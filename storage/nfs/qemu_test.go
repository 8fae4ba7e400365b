package nfs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/initramfs"
	"github.com/muster-hpc/muster/vm/qmp"
	"github.com/muster-hpc/muster/wire"
)

// TestMachines has two machines with kernels of their own mount a volume: what they
// write, whose it is, what they see of each other, and what becomes of an open file
// when the server is killed.
func TestMachines(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("boots machines in QEMU: not with -short")
	}
	kernel, initrd := guestFiles(t)
	s := newSite(t)
	n := newNetwork(t)
	s.cfg.Address, s.cfg.In = netip.MustParseAddr("10.77.0.1"), n.in
	s.cfg.Lease, s.cfg.Grace = 10*time.Second, OwnGrace
	s.open(t)
	home, foreign := s.volume(t, "x", "10.77.0.11", "10.77.0.12"), s.volume(t, "foreign", "10.77.0.12")
	if err := os.Chmod(filepath.Join(home.Path, "secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), []Export{home, foreign}); err != nil {
		t.Fatal(err)
	}
	a, b := n.start(t, kernel, initrd, 11), n.start(t, kernel, initrd, 12)
	for _, g := range []*guest{a, b} {
		g.hears(t) // it is up
		table := g.must(t, order{Do: "mount", Mount: s.Mount(home.Name, "/home", false)})
		for _, want := range []string{"vers=4.1", "hard", "sec=sys", "nosuid,nodev", fmt.Sprint("port=", s.cfg.Port)} {
			if !strings.Contains(table, want) {
				t.Errorf("not mounted with %s:\n%s", want, table)
			}
		}
	}
	// Of another cluster: not even its name.
	if _, err := a.do(order{Do: "mount", Mount: s.Mount(foreign.Name, "/foreign", false)}); err == nil {
		t.Error("a machine mounts what is not its cluster's")
	}

	// Owners are numbers, the same everywhere; users are kept from each other.
	a.must(t, order{Do: "mkdir", Path: "/home/u"})
	a.must(t, order{Do: "write", Path: "/home/u/f", Text: "from a", UID: 1000})
	if got := b.must(t, order{Do: "read", Path: "/home/u/f", UID: 1000}); got != "from a" {
		t.Errorf("the other machine reads %q", got)
	}
	if got := b.must(t, order{Do: "stat", Path: "/home/u/f"}); got != "1000:1000 640" {
		t.Errorf("it is %s there", got)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(home.Path, "u/f"), &st); err != nil || st.Uid != 1000 || st.Gid != 1000 {
		t.Errorf("it is %d:%d here, %v", st.Uid, st.Gid, err)
	}
	if _, err := b.do(order{Do: "read", Path: "/home/u/f", UID: 1001}); err == nil {
		t.Error("anybody reads it")
	}
	if _, err := b.do(order{Do: "write", Path: "/home/u/g", UID: 1001}); err == nil {
		t.Error("anybody writes there")
	}

	// Both are called n01. Neither takes the other for itself that has started again:
	// locks hold, before and after the server was killed.
	a.must(t, order{Do: "open", Path: "/home/held"})
	a.must(t, order{Do: "append", Text: "1"})
	if _, err := b.do(order{Do: "lock", Path: "/home/held"}); err == nil {
		t.Error("both have the lock")
	}
	began := time.Now()
	if err := s.child.signal(unix.SIGKILL); err != nil || !s.child.ended(5*time.Second) {
		t.Fatal(err)
	}
	s.again(t.Context())
	a.must(t, order{Do: "append", Text: "2"})
	t.Logf("killed, started again, written: %.1f s", time.Since(began).Seconds())
	if _, err := b.do(order{Do: "lock", Path: "/home/held"}); err == nil {
		t.Error("the lock was lost with the server")
	}
	if got, err := os.ReadFile(filepath.Join(home.Path, "held")); err != nil || string(got) != "12" {
		t.Errorf("%q, %v", got, err)
	}
	if got := b.must(t, order{Do: "read", Path: "/home/held"}); got != "12" {
		t.Errorf("the other machine reads %q", got)
	}
	if os.Getenv("MUSTER_TEST_SPEED") != "" {
		t.Log(a.must(t, order{Do: "speed", Path: "/home/big", MiB: 40}))
	}
	// Muster goes and another comes: the machines notice nothing.
	pid := s.child.pid
	s.Close()
	a.must(t, order{Do: "append", Text: "3"})
	s.open(t)
	if s.child == nil || s.child.pid != pid {
		t.Error("not found again")
	}
	standStill(t, s, home, a, b)
	// The cluster ends: the machine that goes on anyway has nothing any more.
	home.Clients = []Client{{Address: netip.MustParseAddr("10.77.0.12")}}
	if err := s.Set(t.Context(), []Export{home}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.do(order{Do: "append", Text: "4"}); err == nil {
		t.Error("a machine writes to what was taken from it")
	}
	if got := b.must(t, order{Do: "read", Path: "/home/held"}); got != "123" {
		t.Errorf("the other machine reads %q", got)
	}
}

// standStill has machines stand still for longer than a lease. A server that is held meanwhile leaves them their locks, also
// where one has another address afterwards; one that serves on takes them.
func standStill(t *testing.T, s *site, home Export, a, b *guest) {
	longer := s.cfg.Lease + 3*time.Second
	stand := func() { a.monitor(t, "stop"); b.monitor(t, "stop") }
	goOn := func() { a.monitor(t, "cont"); b.monitor(t, "cont") }
	hold := func() {
		t.Helper()
		if err := errors.Join(s.dropHeld(), s.Hold()); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(moved map[netip.Addr]netip.Addr) {
		t.Helper()
		if err := s.Serve(t.Context(), moved); err != nil {
			t.Fatal(err)
		}
	}
	keeps := func(when, text string) {
		t.Helper()
		began := time.Now()
		a.must(t, order{Do: "append", Text: text})
		t.Logf("%s: written %.1f s after it went on", when, time.Since(began).Seconds())
		if _, err := b.do(order{Do: "lock", Path: "/home/saved"}); err == nil {
			t.Errorf("%s: the lock is lost", when)
		}
	}
	a.must(t, order{Do: "open", Path: "/home/saved"})
	a.must(t, order{Do: "append", Text: "1"})

	hold()
	stand()
	time.Sleep(longer)
	serve(nil)
	goOn()
	keeps("held", "2")

	// Started for machines that then stood for longer than grace and lease, because Muster was away: once more.
	hold()
	stand()
	s.Server.cfg.Grace = 5 * time.Second
	from := size(s.path("log"))
	serve(nil)
	s.waitFor(t, func() bool { text, _ := tail(s.path("log"), from); return strings.Contains(text, "NOT IN GRACE") })
	s.Server.cfg.Grace = s.cfg.Grace
	serve(nil)
	goOn()
	keeps("served twice", "3")

	if err := s.Set(t.Context(), []Export{{Name: home.Name, Path: home.Path, Clients: append(home.Clients, Client{Address: netip.MustParseAddr("10.77.0.13")})}}); err != nil {
		t.Fatal(err)
	}
	hold()
	stand()
	time.Sleep(longer)
	serve(map[netip.Addr]netip.Addr{netip.MustParseAddr("10.77.0.11"): netip.MustParseAddr("10.77.0.13")})
	a.link(t, false) // nothing of the old address reaches a network: taps let nobody else's through
	goOn()
	a.must(t, order{Do: "address", Text: "10.77.0.13"})
	a.link(t, true)
	keeps("moved", "4")

	// Without all that the lock is lost.
	a.monitor(t, "stop")
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		if _, err := b.do(order{Do: "lock", Path: "/home/saved"}); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a machine that stands still keeps its lock from a server that serves on: nothing of this is needed")
		}
	}
	a.monitor(t, "cont")
	if _, err := a.do(order{Do: "append", Text: "5"}); err == nil {
		t.Error("it lost its lock, and writes")
	}
	if got, err := os.ReadFile(filepath.Join(home.Path, "saved")); err != nil || string(got) != "1234" {
		t.Errorf("%q, %v", got, err)
	}
}

// order is one of testdata/guest.
type order struct {
	Do    string     `json:"do"`
	Path  string     `json:"path,omitempty"`
	Text  string     `json:"text,omitempty"`
	UID   int        `json:"uid,omitempty"`
	MiB   int        `json:"mib,omitempty"`
	Mount wire.Mount `json:"mount"`
}

// guestFiles are a kernel, and an initramfs with its NFS client.
func guestFiles(t *testing.T) (kernel, initrd string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("QEMU is not here: package qemu-system-x86")
	}
	tree := os.Getenv("MUSTER_TEST_KERNEL_TREE")
	if cache, err := os.UserCacheDir(); tree == "" && err == nil {
		tree = filepath.Join(cache, "muster-test", "linux-image-cloud-amd64") // where the tests of agent/boot keep it
	}
	list, _ := filepath.Glob(filepath.Join(tree, "boot/vmlinuz-*"))
	if len(list) != 1 {
		t.Skip("no kernel to boot: MUSTER_TEST_KERNEL_TREE names a folder with boot and usr/lib/modules, or run the tests of agent/boot first")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "guest")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./testdata/guest")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	agent, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := initramfs.FromFS(os.DirFS(tree))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := initramfs.Build(&archive, initramfs.Options{Agent: agent, Modules: modules, Wanted: func(file string) bool {
		return strings.HasPrefix(file, "kernel/fs/nfs/nfsv4.ko") || strings.HasPrefix(file, "kernel/drivers/net/virtio_net.ko") || strings.HasPrefix(file, "kernel/drivers/virtio/virtio_pci.ko")
	}}); err != nil {
		t.Fatal(err)
	}
	initrd = filepath.Join(dir, "initrd")
	if err := os.WriteFile(initrd, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return list[0], initrd
}

// network is a namespace with a bridge, on which the server and the machines are.
type network struct{ name string }

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{name: fmt.Sprintf("muster-export-%d", os.Getpid())}
	run := func(args ...string) {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	run("netns", "add", n.name)
	t.Cleanup(func() { run("netns", "del", n.name) })
	run("-n", n.name, "link", "set", "lo", "up")
	run("-n", n.name, "link", "add", "br0", "type", "bridge")
	run("-n", n.name, "addr", "add", "10.77.0.1/24", "dev", "br0")
	run("-n", n.name, "link", "set", "br0", "up")
	for _, tap := range []string{"tap11", "tap12"} {
		run("-n", n.name, "tuntap", "add", tap, "mode", "tap")
		run("-n", n.name, "link", "set", tap, "master", "br0", "up")
	}
	return n
}

// in runs a function in the namespace.
func (n *network) in(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this
		fd, err := unix.Open("/run/netns/"+n.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(unix.Setns(fd, unix.CLONE_NEWNET), unix.Close(fd))
		}
		if err == nil {
			err = f()
		}
		result <- err
	}()
	return <-result
}

// guest is a machine.
type guest struct {
	line net.Conn
	in   *bufio.Scanner
	qmp  *qmp.Monitor
}

func (n *network) start(t *testing.T, kernel, initrd string, number int) *guest {
	t.Helper()
	dir, err := os.MkdirTemp("", "muster-guest-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	accept := map[string]func() net.Conn{}
	for _, name := range []string{"line", "qmp"} {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		accept[name] = func() net.Conn {
			_ = l.(*net.UnixListener).SetDeadline(time.Now().Add(20 * time.Second))
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
	}
	var console bytes.Buffer
	cmd := exec.Command("qemu-system-x86_64",
		// Without cmpxchg16b, which QEMU 7.2 translates wrongly.
		"-accel", "tcg,thread=multi", "-cpu", "Opteron_G3,-misalignsse,-cx16", "-smp", "1", "-m", "320", "-nodefaults", "-nographic", "-no-reboot",
		"-serial", "stdio", "-chardev", "socket,id=l,path="+filepath.Join(dir, "line"), "-serial", "chardev:l",
		"-qmp", "unix:"+filepath.Join(dir, "qmp"),
		"-kernel", kernel, "-initrd", initrd, "-append", fmt.Sprintf("console=ttyS0 quiet panic=-1 guest.address=10.77.0.%d", number),
		"-netdev", fmt.Sprintf("tap,id=n,ifname=tap%d,script=no,downscript=no", number),
		"-device", fmt.Sprintf("virtio-net-pci,netdev=n,romfile=,mac=52:54:00:77:00:%02d", number), "-device", "virtio-rng-pci")
	cmd.Stdout, cmd.Stderr = &console, &console
	if err := n.in(cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("machine %d: %s", number, console.Bytes())
		}
	})
	line := accept["line"]()
	// On a computer with nothing else to do all takes 40 seconds.
	_ = line.SetDeadline(time.Now().Add(8 * time.Minute))
	g := &guest{line: line, in: bufio.NewScanner(line)}
	g.in.Buffer(nil, 1<<20)
	if g.qmp, err = qmp.NewMonitor(t.Context(), accept["qmp"](), func(qmp.Event) {}); err != nil {
		t.Fatal(err)
	}
	return g
}

// monitor has QEMU do something with the machine.
func (g *guest) monitor(t *testing.T, command string) {
	t.Helper()
	if _, err := g.qmp.Do(t.Context(), command, nil); err != nil {
		t.Fatal(err)
	}
}

// link plugs or unplugs its network card.
func (g *guest) link(t *testing.T, up bool) {
	t.Helper()
	if _, err := g.qmp.Do(t.Context(), "set_link", map[string]any{"name": "n", "up": up}); err != nil {
		t.Fatal(err)
	}
}

// hears is what a machine says next.
func (g *guest) hears(t *testing.T) {
	t.Helper()
	if _, err := g.reply(); err != nil {
		t.Fatal(err)
	}
}

func (g *guest) reply() (string, error) {
	if !g.in.Scan() {
		return "", fmt.Errorf("the machine says nothing: %w", errors.Join(g.in.Err(), io.EOF))
	}
	var r struct{ OK, Error string }
	if err := json.Unmarshal(g.in.Bytes(), &r); err != nil {
		return "", fmt.Errorf("%q: %w", g.in.Bytes(), err)
	}
	if r.Error != "" {
		return "", muster.Errorf(muster.EInternal, "%s", r.Error)
	}
	return r.OK, nil
}

func (g *guest) do(o order) (string, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	if _, err := g.line.Write(append(b, '\n')); err != nil {
		return "", err
	}
	return g.reply()
}

func (g *guest) must(t *testing.T, o order) string {
	t.Helper()
	text, err := g.do(o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return text
}
