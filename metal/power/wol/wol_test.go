package wol

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
)

const mac = "52:54:00:12:34:56"

// TestBroadcast hears what On sends: a whole magic packet, three times, with
// SecureOn's password when there is one.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"", "01:02:03:04:05:06"} {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer pc.Close()
		to := power.Target{Machine: "m1", MACs: []string{mac}, Address: muster.PowerAddress{Kind: muster.PowerWOL, Address: pc.LocalAddr().String()}}
		want := magic(t)
		if password != "" {
			to.Secret = func(context.Context) ([]byte, error) { return []byte(password), nil }
			want = append(want, 1, 2, 3, 4, 5, 6)
		}
		d, err := open(to, power.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.On(t.Context()); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 2000)
		for i := range times {
			_ = pc.SetReadDeadline(time.Now().Add(time.Minute))
			n, _, err := pc.ReadFrom(buf)
			if err != nil {
				t.Fatalf("packet %d of %d: %v", i+1, times, err)
			}
			if !bytes.Equal(buf[:n], want) {
				t.Errorf("packet %d: %x, want %x", i+1, buf[:n], want)
			}
		}
	}
}

// magic is the packet as its inventor describes it, made by hand.
func magic(t *testing.T) []byte {
	t.Helper()
	hw, err := net.ParseMAC(mac)
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.Repeat([]byte{0xff}, 6)
	return append(b, bytes.Repeat(hw, 16)...)
}

// TestEthernet sends raw frames through a pair of interfaces in a namespace of
// its own, without any address, and catches them at the other end.
func TestEthernet(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes a network namespace: needs root")
	}
	runtime.LockOSThread() // not given back: the thread ends with the test
	ns, err := netns.New()
	if err != nil {
		t.Skip("no network namespace: ", err)
	}
	defer ns.Close()
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "here"}, PeerName: "there"}
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"here", "there"} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(link); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		link, err := netlink.LinkByName("here") // before it is up it drops frames
		if err == nil && link.Attrs().OperState == netlink.OperUp {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the pair of interfaces does not come up")
		}
	}
	there, err := net.InterfaceByName("there")
	if err != nil {
		t.Fatal(err)
	}
	proto := uint16(etherType&0xff)<<8 | etherType>>8 // network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(proto))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: there.Index}); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		t.Fatal(err)
	}
	if err := (ethernet{"here"}).send(t.Context(), packet(net.HardwareAddr{0x52, 0x54, 0, 0x12, 0x34, 0x56}, nil)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2000)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n < 14 || !bytes.Equal(buf[:6], bytes.Repeat([]byte{0xff}, 6)) || !bytes.Equal(buf[14:n], magic(t)) {
		t.Errorf("caught %x", buf[:n])
	}
	if err := (ethernet{"nowhere"}).send(t.Context(), nil); err == nil {
		t.Error("sent by an interface that is not there")
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	to := power.Target{
		Machine: "m1", MACs: []string{mac}, Address: muster.PowerAddress{Kind: muster.PowerWOL, Address: "127.0.0.1"},
		Secret: func(context.Context) ([]byte, error) { return []byte("opensesame"), nil },
	}
	d, err := open(to, power.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	err = d.On(t.Context())
	if muster.CodeOf(err) != muster.EInvalid || bytes.Contains([]byte(err.Error()), []byte("opensesame")) {
		t.Errorf("got %v", err)
	}
}

type world struct {
	heard    time.Time
	link     power.Link
	agentErr error
	asked    int
}

func (w *world) Heard(context.Context, muster.MachineID) (time.Time, error) { return w.heard, nil }
func (w *world) Link(context.Context, muster.MachineID) (power.Link, error) { return w.link, nil }
func (w *world) Close(context.Context, muster.MachineID) error              { return nil }

type agent struct{ *world }

func (a agent) Off(context.Context, muster.MachineID) error { return a.agentErr }

type human struct{ *world }

func (h human) Off(context.Context, muster.MachineID, string) (string, error) {
	h.asked++
	return "root", nil
}
func (human) Forget(context.Context, muster.MachineID) error { return nil }

// TestStateNeedsBoth: silence alone, or a missing link alone, is not off.
func TestStateNeedsBoth(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		name  string
		heard time.Time
		link  power.Link
		want  power.State
	}{
		{"heard, with a link", now, power.Link{Up: true}, power.On},
		{"heard, without a link", now, power.Link{}, power.On},
		{"silent, with a link", now.Add(-time.Minute), power.Link{Up: true}, power.Unknown},
		{"never heard, with a link", time.Time{}, power.Link{Up: true}, power.Unknown},
		{"silent, no link", now.Add(-time.Minute), power.Link{}, power.Off},
		{"silent, a sleeping link", time.Time{}, power.Link{Up: true, Asleep: true}, power.Off},
		{"silent, and nobody knows its port", time.Time{}, power.Link{Unknown: true}, power.Unknown},
		{"silent, we closed its port", time.Time{}, power.Link{Closed: true}, power.Unknown},
	} {
		w := &world{heard: c.heard, link: c.link}
		d, err := open(power.Target{Machine: "m", MACs: []string{mac}, Address: muster.PowerAddress{Kind: muster.PowerWOL}}, power.Deps{Liveness: w, SwitchPort: w})
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.State(t.Context())
		if err != nil || got.State != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got.State, err, c.want)
		}
		if got.Proof == power.ProofController || got.Proof == power.ProofPort {
			t.Errorf("%s: %q is called a proof", c.name, got.Proof)
		}
	}
}

// TestOffAsksInOrder: the agent first, a human only when it does not do it.
func TestOffAsksInOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		err   error
		asked int
	}{{"trusted", nil, 0}, {"a tenant's", muster.Errorf(muster.EForbidden, "a tenant has it"), 1}, {"gone", errors.New("gone"), 1}} {
		w := &world{agentErr: c.err}
		d, err := open(power.Target{Machine: "m", MACs: []string{mac}, Address: muster.PowerAddress{Kind: muster.PowerWOL}}, power.Deps{Agent: agent{w}, ManualFence: human{w}})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Off(t.Context()); err != nil || w.asked != c.asked {
			t.Errorf("%s: %v, a human was asked %d times, want %d", c.name, err, w.asked, c.asked)
		}
	}
	d, err := open(power.Target{Machine: "m", MACs: []string{mac}, Address: muster.PowerAddress{Kind: muster.PowerWOL}}, power.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Off(t.Context()); muster.CodeOf(err) != muster.EInvalid || d.Abilities().Off {
		t.Errorf("with nobody to ask: %v", err)
	}
}

// FuzzPassword reads any bytes as SecureOn's password.
func FuzzPassword(f *testing.F) {
	f.Add([]byte("01:02:03:04:05:06"))
	f.Add([]byte{1, 2, 3, 4, 5, 6})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePassword(b)
		if err == nil && len(p) != 0 && len(p) != macLength {
			t.Errorf("%q gave %d bytes", b, len(p))
		}
	})
}
