package sleep_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/lab/sleep"
	"github.com/muster-hpc/muster/provider/local/network"
)

// A card that listens is woken by its packet, put on the wire at the other end; not
// by another's, not by what came while the machine was on.
func TestWatch(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a tap needs root")
	}
	name := fmt.Sprintf("muster-tap-%d", os.Getpid())
	ns, err := network.OpenNamespace(name, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close(); _ = network.DeleteNamespace(name) }()
	mac := net.HardwareAddr{0x52, 1, 2, 3, 4, 0}
	other := net.HardwareAddr{0x52, 1, 2, 3, 5, 0}
	var tap *sleep.Tap
	send := func(to net.HardwareAddr) {
		t.Helper()
		err := ns.Do(func() error {
			link, err := netlink.LinkByName("t0")
			if err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Sendto(fd, sleep.Frame(other, to), 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Halen: 6})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	carrier := func(want bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			on := false
			err := ns.Do(func() error {
				link, err := netlink.LinkByName("t0")
				if err == nil {
					on = link.Attrs().RawFlags&unix.IFF_LOWER_UP != 0
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if on == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the link is %v", on)
			}
		}
	}
	err = ns.Do(func() error {
		if err := sleep.CreateTap("t0"); err != nil {
			return err
		}
		if err := sleep.CreateTap("t0"); err != nil {
			return fmt.Errorf("again: %w", err)
		}
		link, err := netlink.LinkByName("t0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		tap, err = sleep.OpenTap("t0", mac)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	carrier(true)
	watch := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return tap.Watch(ctx)
	}
	send(other)
	if err := watch(50 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("woken by another's packet: %v", err)
	}
	send(mac)
	if err := watch(5 * time.Second); err != nil {
		t.Fatalf("not woken: %v", err)
	}
	// The machine is on, and reads nothing; then it goes off.
	lent, err := tap.Lend()
	if err != nil {
		t.Fatal(err)
	}
	send(mac)
	_ = lent.Fd() // a child is started with it, which leaves it blocking
	if err := errors.Join(lent.Close(), tap.Take()); err != nil {
		t.Fatal(err)
	}
	if err := watch(50 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("woken by what came while it was on: %v", err)
	}
	send(mac)
	if err := watch(5 * time.Second); err != nil {
		t.Fatalf("not woken again: %v", err)
	}
	if err := tap.SetCarrier(false); err != nil {
		t.Fatal(err)
	}
	carrier(false)
	if err := tap.SetCarrier(true); err != nil {
		t.Fatal(err)
	}
	carrier(true)
	if err := tap.Close(); err != nil {
		t.Fatal(err)
	}
	carrier(false)
}
