package lab_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/process"
	"github.com/muster-hpc/muster/lab"
	"github.com/muster-hpc/muster/lab/machine"
	"github.com/muster-hpc/muster/lab/sleep"
	"github.com/muster-hpc/muster/lab/vswitch"
	"github.com/muster-hpc/muster/metal/switches"
	"github.com/muster-hpc/muster/provider/local/network"
)

// This program is a lab's machine, too, when it is told so.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == lab.MachineArgument {
		ctx, stop := notify()
		err := machine.Run(ctx, os.Args[2], machine.Options{Clock: muster.SystemClock{}, Log: slog.Default(), Controller: controller})
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// pretend is a management controller that writes down what it is told.
type pretend struct{ path string }

func controller(_ context.Context, dir string, c machine.Config, chassis machine.Chassis) (machine.Controller, error) {
	if !c.BMC.IsValid() {
		return nil, errors.New("a controller without an address")
	}
	_ = chassis
	return pretend{filepath.Join(dir, "told")}, nil
}

func (p pretend) Fault(kind machine.FaultKind, on bool) error {
	f, err := os.OpenFile(p.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %v\n", kind, on)
	return err
}

func (pretend) Close() error { return nil }

// rack is a lab that is up.
type rack struct {
	*lab.Lab
	config lab.Config
	self   string
}

func needLab(t *testing.T, c lab.Config) {
	t.Helper()
	if testing.Short() {
		t.Skip("a lab takes seconds")
	}
	if os.Geteuid() != 0 {
		t.Skip("a lab needs root")
	}
	var missing []lab.Check
	for _, k := range lab.Doctor(t.Context(), c) {
		if !k.OK && k.Package != "" {
			missing = append(missing, k)
		}
	}
	if len(missing) > 0 {
		t.Skipf("%s: %s; %s", missing[0].Name, missing[0].Found, lab.Cure(missing))
	}
}

func small(n int) lab.Config {
	return lab.Config{Racks: 1, Net: lab.DefaultNet(), NoKVM: true, NoBMC: true,
		Classes: []lab.Class{{Name: "small", Count: n, Cores: 1, Memory: 256 << 20, Disk: 64 << 20}}}
}

func start(t *testing.T, c lab.Config) *rack {
	t.Helper()
	needLab(t, c)
	parent, err := os.MkdirTemp("/var/tmp", "lab")
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Open(filepath.Join(parent, "l"))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &rack{l, c, self}
	t.Cleanup(func() {
		r.gone(t)
		if err := os.Remove(parent); err != nil {
			t.Error(err)
		}
	})
	r.up(t)
	return r
}

func (r *rack) up(t *testing.T) {
	t.Helper()
	if err := r.Up(t.Context(), &r.config, r.self, nil); err != nil {
		t.Fatalf("%v: %v", err, errors.Unwrap(err))
	}
}

// gone takes the lab away and looks whether anything is left of it.
func (r *rack) gone(t *testing.T) {
	t.Helper()
	if t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(r.Dir(), "*", "*", "machine.log"))
		for _, f := range logs {
			b, _ := os.ReadFile(f)
			t.Logf("%s:\n%s", f, b)
		}
	}
	id := r.Namespace()[len("muster-lab-"):]
	if err := r.Down(context.Background(), nil); err != nil {
		t.Errorf("down: %v", err)
	}
	if list, err := process.List(id); err != nil || len(list) > 0 {
		t.Errorf("%d processes are left: %v", len(list), err)
	}
	for _, ns := range []string{r.Namespace(), r.Namespace() + "-sw"} {
		if _, err := network.OpenNamespace(ns, false); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("namespace %s is left: %v", ns, err)
		}
	}
	if _, err := os.Stat(r.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", r.Dir(), err)
	}
	if err := r.Down(context.Background(), nil); err != nil {
		t.Errorf("down again: %v", err)
	}
}

// status is one machine's, which is there.
func (r *rack) status(t *testing.T, name string) machine.Status {
	t.Helper()
	s, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.Machines, func(m machine.Status) bool { return m.Machine == name })
	if i < 0 {
		t.Fatalf("no %s in %+v", name, s)
	}
	return s.Machines[i]
}

func (r *rack) await(t *testing.T, name string, want machine.State) machine.Status {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s := r.status(t, name)
		if s.State == want {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("%s is %s (%s), not %s", name, s.State, s.Problem, want)
		}
	}
}

func (r *rack) stays(t *testing.T, name string, want machine.State) {
	t.Helper()
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		if s := r.status(t, name); s.State != want {
			t.Fatalf("%s is %s, not %s", name, s.State, want)
		}
	}
}

func (r *rack) port(t *testing.T, name string) switches.Port {
	t.Helper()
	ports, err := vswitch.Open(filepath.Join(r.Dir(), "switch"), "").Ports(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return ports[0]
}

func (r *rack) link(t *testing.T, port string, want bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); r.port(t, port).Link != want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the link of %s is %v", port, !want)
		}
	}
}

// speed waits until the switch sees a link of that speed.
func (r *rack) speed(t *testing.T, port string, want int64) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		p := r.port(t, port)
		if p.Link && p.Speed == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the switch sees a link (%v) of %d bits/s at %s, not of %d", p.Link, p.Speed, port, want)
		}
	}
}

func (r *rack) wake(t *testing.T, machines ...string) {
	t.Helper()
	if err := r.Wake(t.Context(), machines); err != nil {
		t.Fatal(err)
	}
}

func (r *rack) fault(t *testing.T, name string, f machine.Fault, clear bool) machine.Status {
	t.Helper()
	list, err := r.Fault(t.Context(), []string{name}, f, clear)
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// ear hears what arrives at the server's interface.
func (r *rack) ear(t *testing.T) *os.File {
	t.Helper()
	ns, err := network.OpenNamespace(r.Namespace(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	var f *os.File
	err = ns.Do(func() error {
		link, err := netlink.LinkByName(lab.Inside)
		if err != nil {
			return err
		}
		const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all)
		if err != nil {
			return err
		}
		f = os.NewFile(uintptr(fd), "ear")
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Attrs().Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// discover waits for a DHCP discover, and reports whose it is and of which firmware.
func discover(t *testing.T, ear *os.File, most time.Duration) (mac net.HardwareAddr, arch int) {
	t.Helper()
	_ = ear.SetReadDeadline(time.Now().Add(most))
	buf := make([]byte, 2048)
	for {
		n, err := ear.Read(buf)
		if err != nil {
			return nil, 0
		}
		f := buf[:n]
		if n < 14+20+8+240 || binary.BigEndian.Uint16(f[12:]) != 0x0800 || f[23] != unix.IPPROTO_UDP {
			continue
		}
		udp := f[14+int(f[14]&15)*4:]
		if len(udp) < 248 || binary.BigEndian.Uint16(udp[2:]) != 67 || udp[8] != 1 {
			continue
		}
		return slices.Clone(net.HardwareAddr(udp[8+28 : 8+34])), clientArch(udp[8+240:])
	}
}

// clientArch is option 93 (RFC 4578), -1 where there is none.
func clientArch(options []byte) int {
	for len(options) > 2 && options[0] != 255 {
		size := 2 + int(options[1])
		if size > len(options) {
			break
		}
		if options[0] == 93 && size == 4 {
			return int(binary.BigEndian.Uint16(options[2:]))
		}
		options = options[size:]
	}
	return -1
}

// A machine is woken by a packet on its wire, asks for an address by its firmware's
// network boot, is cut off and asleep again; its neighbour slept all the time.
func TestWokenByTheWire(t *testing.T) {
	for _, c := range []struct {
		name string
		uefi bool
		arch int
	}{{"BIOS", false, 0}, {"UEFI", true, 7}} {
		t.Run(c.name, func(t *testing.T) {
			config := small(2)
			config.UEFI, config.TPM, config.NoBMC = c.uefi, c.uefi, false
			r := start(t, config)
			ear := r.ear(t)
			r.stays(t, "m01", machine.Asleep)
			r.link(t, "m01-mgmt", true)
			r.speed(t, "m01-mgmt", sleep.SlowLink)
			began := time.Now()
			r.wake(t, "m01")
			mac, arch := discover(t, ear, 2*time.Minute)
			t.Logf("from the magic packet to the first discover: %v", time.Since(began).Round(10*time.Millisecond))
			s := r.await(t, "m01", machine.Booting)
			if mac.String() != s.MAC(machine.Management) || arch != c.arch {
				t.Fatalf("a discover of %s, architecture %d; %+v", mac, arch, s)
			}
			if s.PowerOns != 1 || s.Cause != "magic packet" || s.QEMU == 0 {
				t.Errorf("%+v", s)
			}
			if n := r.status(t, "m02"); n.State != machine.Asleep || n.PowerOns != 0 {
				t.Errorf("its neighbour: %+v", n)
			}
			r.speed(t, "m01-mgmt", sleep.FullLink)
			r.speed(t, "m02-mgmt", sleep.SlowLink)
			r.wake(t, "m01")            // means nothing to one that is on
			time.Sleep(2 * time.Second) // the switch has carried it: it must not meet the machine asleep
			if out, err := os.ReadFile(s.Console); err != nil || !c.uefi && !bytes.Contains(out, []byte("iPXE")) || len(out) == 0 {
				t.Errorf("on its console: %q, %v", out, err)
			}
			if _, err := r.Power(t.Context(), []string{"m01"}, machine.DoOff); err != nil {
				t.Fatal(err)
			}
			r.stays(t, "m01", machine.Asleep)
			r.speed(t, "m01-mgmt", sleep.SlowLink)
			r.wake(t, "m01")
			if s := r.await(t, "m01", machine.Booting); s.PowerOns != 2 {
				t.Errorf("power_ons: %d", s.PowerOns)
			}
		})
	}
}

// Machines meet the server, and nobody else; the message side is closed until
// somebody opens it.
func TestPortsAtFirst(t *testing.T) {
	r := start(t, small(2))
	if p := r.port(t, "m01-mgmt"); p.Closed || !p.Isolated || p.VLAN != lab.ManagementVLAN {
		t.Errorf("%+v", p)
	}
	if p := r.port(t, "server"); p.Closed || p.Isolated || p.VLAN != lab.ManagementVLAN || !p.Link {
		t.Errorf("%+v", p)
	}
	if p := r.port(t, "m02-msg"); !p.Closed {
		t.Errorf("%+v", p)
	}
	s := vswitch.Open(filepath.Join(r.Dir(), "switch"), "")
	want := switches.Want{Port: "m02-msg", VLAN: 100}
	if err := s.Set(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	r.up(t) // does not change what the server has set
	if p := r.port(t, "m02-msg"); p.Want != want {
		t.Errorf("%+v", p)
	}
}

func TestFaults(t *testing.T) {
	config := small(2)
	config.NoBMC = false
	config.Classes[0].NVMe = 1 << 20
	r := start(t, config)
	if _, err := r.Fault(t.Context(), []string{"m01"}, machine.Fault{Kind: machine.Hang}, false); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("a machine that is off hangs: %v", err)
	}
	// A cable that is out wakes nobody, and the switch sees it.
	r.fault(t, "m01", machine.Fault{Kind: machine.NICDown}, false)
	r.link(t, "m01-mgmt", false)
	r.wake(t, "m01")
	r.stays(t, "m01", machine.Asleep)
	r.fault(t, "m01", machine.Fault{Kind: machine.NICDown}, true)
	r.link(t, "m01-mgmt", true)
	// What a disk says of itself is set when the machine is switched on, and while it runs.
	r.fault(t, "m01", machine.Fault{Kind: machine.DiskFails}, false)
	r.wake(t, "m01")
	if s := r.await(t, "m01", machine.Booting); s.Problem != "" {
		t.Error(s.Problem)
	}
	r.fault(t, "m01", machine.Fault{Kind: machine.DiskFails}, true)
	// One that runs, too.
	r.fault(t, "m01", machine.Fault{Kind: machine.NICDown, NIC: machine.Message}, false)
	r.link(t, "m01-mgmt", true)
	r.fault(t, "m01", machine.Fault{Kind: machine.NICDown, NIC: machine.Message}, true)
	// It hangs: its processors take no time any more.
	r.fault(t, "m01", machine.Fault{Kind: machine.Hang}, false)
	if a, b := used(t, r.status(t, "m01").QEMU), time.Second; spent(t, r.status(t, "m01").QEMU, a, b) > b/4 {
		t.Error("a machine that hangs computes")
	}
	r.fault(t, "m01", machine.Fault{Kind: machine.Hang}, true)
	// Both ways of a slow link, also after the lab came up again.
	slow := machine.Fault{Kind: machine.SlowNIC, NIC: machine.Management, Rate: 5e6}
	r.fault(t, "m01", slow, false)
	if !r.shaped(t, "m01-mgmt") || r.shaped(t, "m01-msg") {
		t.Error("the wrong link is slow")
	}
	r.fault(t, "m01", slow, true)
	if r.shaped(t, "m01-mgmt") {
		t.Error("the link is slow still")
	}
	// A boot loop starts it again and again.
	r.fault(t, "m01", machine.Fault{Kind: machine.BootLoop, After: muster.Duration(200 * time.Millisecond)}, false)
	banners := func() int {
		b, _ := os.ReadFile(r.status(t, "m01").Console)
		return bytes.Count(b, []byte("SeaBIOS"))
	}
	first := banners()
	for end := time.Now().Add(2 * time.Minute); banners() < first+2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d starts, as before", banners())
		}
	}
	r.fault(t, "m01", machine.Fault{Kind: machine.BootLoop}, true)
	// It crashes: it is on, and nothing but taking its power away helps.
	if s := r.fault(t, "m01", machine.Fault{Kind: machine.Crash}, false); s.State != machine.Crashed || s.QEMU != 0 {
		t.Fatalf("%+v", s)
	}
	r.wake(t, "m01")
	r.stays(t, "m01", machine.Crashed)
	if _, err := r.Power(t.Context(), []string{"m01"}, machine.DoReset); err != nil {
		t.Fatal(err)
	}
	r.await(t, "m01", machine.Booting)
	// The power fails everywhere.
	if _, err := r.Fault(t.Context(), []string{lab.All}, machine.Fault{Kind: machine.PowerCut}, false); err != nil {
		t.Fatal(err)
	}
	r.await(t, "m01", machine.Asleep)
	r.link(t, "m01-mgmt", false)
	r.link(t, "m02-mgmt", false)
	r.wake(t, "m01", "m02")
	r.stays(t, "m02", machine.Asleep)
	if _, err := r.Power(t.Context(), []string{"m01"}, machine.DoOn); muster.CodeOf(err) != muster.EUnavailable {
		t.Errorf("a machine without mains comes on: %v", err)
	}
	r.up(t) // a fault is no lack
	r.stays(t, "m02", machine.Asleep)
	r.link(t, "m02-mgmt", false)
	r.fault(t, "m02", machine.Fault{Kind: machine.PowerCut}, true)
	r.speed(t, "m02-mgmt", sleep.SlowLink)
	r.wake(t, "m02")
	r.await(t, "m02", machine.Booting)
	// What is the controller's is told to it.
	r.fault(t, "m02", machine.Fault{Kind: machine.BMCUnreachable}, false)
	told, err := os.ReadFile(filepath.Join(r.Dir(), "machines", "m02", "told"))
	if want := "power-cut true\npower-cut false\nbmc-unreachable true\n"; err != nil || string(told) != want {
		t.Errorf("the controller was told %q, %v", told, err)
	}
	if s := r.status(t, "m02"); !s.BMC.IsValid() || len(s.Faults) != 1 {
		t.Errorf("%+v", s)
	}
}

// shaped reports whether what goes to a machine by a port is slowed.
func (r *rack) shaped(t *testing.T, port string) (found bool) {
	t.Helper()
	ns, err := network.OpenNamespace(r.Namespace()+"-sw", false)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	err = ns.Do(func() error {
		link, err := netlink.LinkByName(port)
		if err != nil {
			return err
		}
		list, err := netlink.QdiscList(link)
		for _, q := range list {
			found = found || q.Type() == "tbf"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// used is the processor time of a process so far.
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	var user, system int64
	_, _ = fmt.Sscan(string(f[11]), &user)
	_, _ = fmt.Sscan(string(f[12]), &system)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func spent(t *testing.T, pid int, before, over time.Duration) time.Duration {
	t.Helper()
	time.Sleep(over)
	return used(t, pid) - before
}

// Whatever is killed: what is missing comes again, and down takes all of it away.
func TestKilled(t *testing.T) {
	r := start(t, small(2))
	r.wake(t, "m01")
	s := r.await(t, "m01", machine.Booting)
	kill(t, s.PID)
	r.await(t, "m01", machine.Gone)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if errors.Is(unix.Kill(s.QEMU, 0), unix.ESRCH) || zombie(s.QEMU) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("QEMU goes on without its machine")
		}
	}
	r.up(t)
	if n := r.await(t, "m01", machine.Asleep); n.PowerOns != 1 || n.PID == s.PID {
		t.Errorf("%+v", n)
	}
	// QEMU dies: that is a machine that breaks.
	r.wake(t, "m01")
	kill(t, r.await(t, "m01", machine.Booting).QEMU)
	if s := r.await(t, "m01", machine.Crashed); s.Problem == "" {
		t.Errorf("%+v", s)
	}
	// The switch dies.
	r.killAll(t, func(name string) bool { return name == "ovs-vswitchd" || name == "ovsdb-server" })
	if s, err := r.Status(t.Context()); err != nil || s.Switch != "down" {
		t.Fatalf("switch %s, %v", s.Switch, err)
	}
	r.up(t)
	ear := r.ear(t)
	if _, err := r.Power(t.Context(), []string{"m01"}, machine.DoOff); err != nil {
		t.Fatal(err)
	}
	r.wake(t, "m01")
	if mac, _ := discover(t, ear, time.Minute); mac.String() != r.status(t, "m01").MAC(machine.Management) {
		t.Fatalf("after the switch came again: a discover of %s", mac)
	}
	// Everything dies, and what was written down of it with it.
	r.killAll(t, func(string) bool { return true })
	if err := os.Remove(filepath.Join(r.Dir(), "machines", "m01", "machine.json")); err != nil {
		t.Fatal(err)
	}
	r.up(t)
	r.await(t, "m01", machine.Asleep)
	// What nobody can find by its record is taken away by down, too.
	records, err := filepath.Glob(filepath.Join(r.Dir(), "*", "*", "process.json"))
	if err != nil || len(records) != 2 {
		t.Fatal(records, err)
	}
	for _, f := range records {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}

// A lab that was killed while it came up goes down, or comes up.
func TestHalfUp(t *testing.T) {
	for _, way := range []string{"up", "down"} {
		for _, after := range []time.Duration{20, 60, 120, 200, 300} {
			t.Run(fmt.Sprintf("%s after %d ms", way, after), func(t *testing.T) {
				needLab(t, small(2))
				parent, err := os.MkdirTemp("/var/tmp", "lab")
				if err != nil {
					t.Fatal(err)
				}
				defer os.Remove(parent)
				l, err := lab.Open(filepath.Join(parent, "l"))
				if err != nil {
					t.Fatal(err)
				}
				self, err := os.Executable()
				if err != nil {
					t.Fatal(err)
				}
				r := &rack{l, small(2), self}
				defer r.gone(t)
				cmd := exec.Command(self, "-test.run=^TestOnlyUp$", "-test.v")
				cmd.Env = append(os.Environ(), "MUSTER_TEST_LAB="+l.Dir())
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after * time.Millisecond)
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				if way == "up" {
					r.up(t)
					r.stays(t, "m02", machine.Asleep)
				}
			})
		}
	}
}

// A lab whose down was killed goes down, or comes up.
func TestHalfDown(t *testing.T) {
	for i, after := range []time.Duration{5, 20, 40, 80, 160} {
		t.Run(fmt.Sprintf("after %d ms", after), func(t *testing.T) {
			r := start(t, small(2))
			r.wake(t, "m01")
			r.await(t, "m01", machine.Booting)
			cmd := exec.Command(r.self, "-test.run=^TestOnlyDown$", "-test.v")
			cmd.Env = append(os.Environ(), "MUSTER_TEST_LAB="+r.Dir())
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after * time.Millisecond)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if i%2 == 0 {
				r.up(t)
				r.status(t, "m01")
				r.stays(t, "m02", machine.Asleep)
			}
		})
	}
}

// TestOnlyDown is what TestHalfDown kills.
func TestOnlyDown(t *testing.T) {
	dir := os.Getenv("MUSTER_TEST_LAB")
	if dir == "" {
		t.Skip("only under TestHalfDown")
	}
	l, err := lab.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyUp is what TestHalfUp kills.
func TestOnlyUp(t *testing.T) {
	dir := os.Getenv("MUSTER_TEST_LAB")
	if dir == "" {
		t.Skip("only under TestHalfUp")
	}
	l, err := lab.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	(&rack{l, small(2), self}).up(t)
}

// Two labs beside each other do not meet, and one goes without the other.
func TestTwoLabs(t *testing.T) {
	a, b := start(t, small(1)), start(t, small(1))
	heard := b.ear(t)
	own := a.ear(t)
	a.wake(t, "m01")
	if mac, _ := discover(t, own, time.Minute); mac.String() != a.status(t, "m01").MAC(machine.Management) {
		t.Fatalf("a discover of %s", mac)
	}
	if mac, _ := discover(t, heard, 200*time.Millisecond); mac != nil {
		t.Fatalf("the other lab hears %s", mac)
	}
	b.stays(t, "m01", machine.Asleep)
	b.gone(t)
	a.stays(t, "m01", machine.Booting)
}

// With an uplink the server's interface is where the command runs; it goes with the
// lab, and one that would meet another network is refused.
func TestUplink(t *testing.T) {
	needLab(t, small(1))
	host := fmt.Sprintf("muster-host-%d", os.Getpid())
	ns, err := network.OpenNamespace(host, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close(); _ = network.DeleteNamespace(host) }()
	parent, err := os.MkdirTemp("/var/tmp", "lab")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(parent)
	l, err := lab.Open(filepath.Join(parent, "l"))
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	c := small(1)
	c.Uplink, c.NoBMC = "lab0", false
	r := &rack{l, c, self}
	defer r.gone(t)
	// A program of its own: a test's threads are in the namespace of the host.
	inside := func(args ...string) ([]byte, error) {
		cmd := exec.Command(args[0], args[1:]...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.Env = append(os.Environ(), "MUSTER_TEST_LAB="+l.Dir(), "MUSTER_TEST_UPLINK="+c.Uplink)
		if err := ns.Do(cmd.Start); err != nil {
			return nil, err
		}
		err := cmd.Wait()
		return out.Bytes(), err
	}
	if out, err := inside(self, "-test.run=^TestOnlyUplink$", "-test.v"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := inside("ip", "-br", "address", "show", "lab0"); err != nil || !bytes.Contains(out, []byte("10.77.0.1/16")) {
		t.Fatalf("%v: %s", err, out)
	}
	// Controllers answer there.
	if out, err := inside("ping", "-c1", "-W2", "10.77.128.1"); err != nil {
		if _, lacks := exec.LookPath("ping"); lacks == nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	r.gone(t)
	if out, err := inside("ip", "link", "show", "lab0"); err == nil {
		t.Fatalf("the uplink is left: %s", out)
	}
	if out, err := inside("ip", "link", "add", "lab0", "type", "dummy"); err != nil {
		t.Skipf("no dummy interface: %s", out)
	}
	if out, err := inside(self, "-test.run=^TestOnlyUplink$", "-test.v"); err == nil || !bytes.Contains(out, []byte("not this lab's")) {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestOnlyUplink is what TestUplink runs elsewhere.
func TestOnlyUplink(t *testing.T) {
	dir, uplink := os.Getenv("MUSTER_TEST_LAB"), os.Getenv("MUSTER_TEST_UPLINK")
	if uplink == "" {
		t.Skip("only under TestUplink")
	}
	l, err := lab.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	c := small(1)
	c.Uplink, c.NoBMC = uplink, false
	(&rack{l, c, self}).up(t)
}

func TestAnotherMake(t *testing.T) {
	r := start(t, small(1))
	other := small(2)
	if err := r.Up(t.Context(), &other, r.self, nil); muster.CodeOf(err) != muster.EConflict {
		t.Errorf("a lab of another make: %v", err)
	} else if text := err.Error(); !strings.Contains(text, "machines: 1,") || !strings.Contains(text, "not 2,") || strings.Contains(text, "racks") {
		t.Errorf("what differs is not told: %s", text)
	}
	if err := r.Up(t.Context(), nil, r.self, nil); err != nil {
		t.Errorf("the lab that is there: %v", err)
	}
	if err := r.Wake(t.Context(), []string{"m1", "m07"}); muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("machines that are not there: %v", err)
	}
	if s, err := r.Status(t.Context()); err != nil || s.Switch != "running" || s.Firmware != "BIOS" || s.Server.String() != "10.77.0.1/16" || s.Interface != lab.Inside {
		t.Errorf("%+v, %v", s, err)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid < 2 {
		t.Fatalf("process %d", pid)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(b, []byte(") Z "))
}

// killAll kills the lab's processes whose name suits, and waits until they are dead.
func (r *rack) killAll(t *testing.T, suits func(name string) bool) {
	t.Helper()
	list, err := process.List(r.Namespace()[len("muster-lab-"):])
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, p := range list {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID()))
		if suits(string(bytes.TrimSpace(name))) {
			killed++
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			for p.Alive() {
				time.Sleep(time.Millisecond)
			}
		}
		p.Close()
	}
	if killed == 0 {
		t.Fatal("nothing to kill")
	}
}
