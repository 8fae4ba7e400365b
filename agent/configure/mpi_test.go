package configure

import (
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/wire"
)

// Where nothing of ours has to say which network is for messages, nothing does: users' lists of
// interfaces hold. Open MPI 4 uses both interfaces there, and one of them for next to nothing.
// A management network whose other machines are closed to the node is isolated for Open MPI 5,
// which asks the routes, and not for 4.
func TestIsolated(t *testing.T) {
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
		ask := func(when string, four, five bool) {
			if got := isolated("mgmt0", false); got != four {
				t.Errorf("%s, release 4: %v", when, got)
			}
			if got := isolated("mgmt0", true); got != five {
				t.Errorf("%s, release 5: %v", when, got)
			}
		}
		_, single, _ := net.ParseCIDR("10.77.0.20/32")
		_, wide, _ := net.ParseCIDR("10.77.0.0/24")
		_, other, _ := net.ParseCIDR("10.99.0.16/28")
		_, closed, _ := net.ParseCIDR("10.77.0.16/28")
		wide.IP = single.IP
		steps := []struct {
			when       string
			do         func() error
			four, five bool
		}{
			{"an address alone", func() error { return netlink.AddrAdd(dev, &netlink.Addr{IPNet: single}) }, true, true},
			{"a network", func() error {
				_ = netlink.AddrDel(dev, &netlink.Addr{IPNet: single})
				return netlink.AddrAdd(dev, &netlink.Addr{IPNet: wide})
			}, false, false},
			{"another network closed", func() error { return netlink.RouteAdd(&netlink.Route{Type: unix.RTN_UNREACHABLE, Dst: other}) }, false, false},
			{"its machines closed", func() error { return netlink.RouteAdd(&netlink.Route{Type: unix.RTN_UNREACHABLE, Dst: closed}) }, false, true},
		}
		for _, s := range steps {
			if err := s.do(); err != nil {
				t.Errorf("%s: %v", s.when, err)
			}
			ask(s.when, s.four, s.five)
		}
	}()
	<-done
}

func TestMPIParams(t *testing.T) {
	t.Parallel()
	cfg := &wire.NodeConfig{Interface: "msg0", Management: "mgmt0"}
	for _, c := range []struct {
		five, isolated bool
		want           []string
	}{
		{true, true, nil},
		{false, true, []string{"btl_tcp_latency_mgmt0 = 1000000", "btl_tcp_bandwidth_mgmt0 = 1"}},
		{true, false, []string{"btl_tcp_if_include = msg0"}},
		{false, false, []string{"btl_tcp_if_include = msg0"}},
	} {
		got := strings.TrimSpace(mpiParams(cfg, c.five, c.isolated))
		if want := strings.Join(c.want, "\n"); got != want {
			t.Errorf("release 5 %v, isolated %v: %q, want %q", c.five, c.isolated, got, want)
		}
	}
}
