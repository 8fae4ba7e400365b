package boot

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

// A node reaches the server and what else a site has in the management network, and not the
// addresses that other machines have there.
func TestClosedAddresses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a network namespace")
	}
	done := make(chan struct{})
	go func() { // this thread is never used again
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("unshare: %v", err)
			return
		}
		for _, name := range []string{"first", "second"} {
			if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "p"}); err != nil {
				t.Errorf("add a link: %v", err)
				return
			}
			if peer, err := netlink.LinkByName(name + "p"); err == nil {
				_ = netlink.LinkSetUp(peer)
			}
		}
		dev, err := netlink.LinkByName("first")
		if err != nil {
			t.Error(err)
			return
		}
		link := wire.BootLink{
			MAC: dev.Attrs().HardwareAddr.String(), Name: "mgmt0", Address: netip.MustParsePrefix("10.77.0.20/24"),
			Closed: []netip.Prefix{netip.MustParsePrefix("10.77.0.16/28"), netip.MustParsePrefix("10.77.0.32/27")},
		}
		for _, name := range []string{"first", "mgmt0"} { // again, as after a failure
			if err := apply([]NIC{{Name: name, MAC: link.MAC}}, &link); err != nil {
				t.Error(err)
			}
			for to, closed := range map[string]bool{
				"10.77.0.1": false, "10.77.0.15": false, "10.77.0.20": false, "10.77.0.64": false,
				"10.77.0.16": true, "10.77.0.21": true, "10.77.0.33": true, "10.77.0.63": true,
			} {
				r, err := netlink.RouteGet(netip.MustParseAddr(to).AsSlice())
				if closed != errors.Is(err, unix.EHOSTUNREACH) || !closed && err != nil {
					t.Errorf("%s: %v %v, closed should be %v", to, r, err, closed)
				}
			}
		}
		// Of a virtual machine: an address without a network, beside the gateway. Other machines are out of reach.
		alone := wire.BootLink{MAC: link.MAC, Name: "mgmt0", Address: netip.MustParsePrefix("10.90.0.5/32"), Gateway: netip.MustParseAddr("10.90.0.1"),
			Closed: []netip.Prefix{netip.MustParsePrefix("10.90.0.0/16")}}
		for range 2 {
			if err := apply([]NIC{{Name: "mgmt0", MAC: link.MAC}}, &alone); err != nil {
				t.Error(err)
			}
			for to, want := range map[string]error{"10.90.0.1": nil, "10.90.0.6": unix.EHOSTUNREACH, "192.0.2.1": unix.ENETUNREACH} {
				if _, err := netlink.RouteGet(netip.MustParseAddr(to).AsSlice()); !errors.Is(err, want) {
					t.Errorf("%s: %v, not %v", to, err, want)
				}
			}
		}
	}()
	<-done
}
