package boot

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A node keeps its management address as a net of its own: the server is reached, and no other
// node. Before, it had the whole net, as DHCP said.
func TestManagementReachesTheServerOnly(t *testing.T) {
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
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "mgmt0"}, PeerName: "peer0"}); err != nil {
			t.Errorf("add a link: %v", err)
			return
		}
		dev, err := netlink.LinkByName("mgmt0")
		if err != nil {
			t.Error(err)
			return
		}
		if peer, err := netlink.LinkByName("peer0"); err == nil {
			_ = netlink.LinkSetUp(peer)
		}
		_ = netlink.LinkSetUp(dev)
		server := netip.MustParseAddr("10.77.0.1")
		if err := addresses(dev, netip.MustParsePrefix("10.77.0.16/16"), netip.Addr{}, true); err != nil {
			t.Error(err)
		}
		if _, err := netlink.RouteGet(net.ParseIP("10.77.0.17")); err != nil {
			t.Errorf("the net of the first address: %v", err)
		}
		for range 2 {
			if err := addresses(dev, netip.MustParsePrefix("10.77.0.16/32"), server, false); err != nil {
				t.Error(err)
			}
			list, err := netlink.AddrList(dev, unix.AF_INET)
			if err != nil || len(list) != 1 || list[0].IPNet.String() != "10.77.0.16/32" {
				t.Errorf("%v %v", list, err)
			}
			if r, err := netlink.RouteGet(server.AsSlice()); err != nil || len(r) != 1 || !r[0].Src.Equal(net.ParseIP("10.77.0.16")) {
				t.Errorf("the server: %v %v", r, err)
			}
			if r, err := netlink.RouteGet(net.ParseIP("10.77.0.17")); !errors.Is(err, unix.ENETUNREACH) {
				t.Errorf("another node: %v %v", r, err)
			}
		}
	}()
	<-done
}
