package dhcp

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// listen opens a UDP socket for what comes in by one interface, and no other.
func listen(ctx context.Context, iface string, port int) (*net.UDPConn, error) {
	// Two that share a port would each get some of the packets.
	if err := occupied(iface, port); err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var inner error
		err := c.Control(func(fd uintptr) {
			f := int(fd)
			for _, opt := range []int{unix.SO_REUSEADDR, unix.SO_BROADCAST} {
				if inner = unix.SetsockoptInt(f, unix.SOL_SOCKET, opt, 1); inner != nil {
					return
				}
			}
			if inner = unix.BindToDevice(f, iface); inner != nil {
				return
			}
			// A storm is many packets at once. Without CAP_NET_ADMIN the system's
			// limit holds, which is no reason to fail.
			if unix.SetsockoptInt(f, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20) != nil {
				_ = unix.SetsockoptInt(f, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20)
			}
		})
		if err != nil {
			return err
		}
		return inner
	}}
	c, err := lc.ListenPacket(ctx, "udp4", "0.0.0.0:"+strconv.Itoa(port))
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "cannot listen for DHCP on %s, port %d", iface, port).
			WithHint("run as root, and see with: ss -ulnp 'sport = :%d' whether another DHCP server has that interface", port).Wrap(err)
	}
	return c.(*net.UDPConn), nil
}

// occupied is an error if somebody listens on that port of that interface. A socket
// of all interfaces does not disturb: what comes in by a socket's own interface is
// the socket's.
func occupied(iface string, port int) error {
	ifi, err := net.InterfaceByName(iface)
	if err != nil {
		return muster.Errorf(muster.ENotFound, "no interface %q", iface).
			WithHint("see the names with: ip -br link").Wrap(err)
	}
	sockets, err := netlink.SocketDiagUDP(unix.AF_INET)
	if err != nil {
		return nil //nolint:nilerr // a kernel that cannot be asked is none that says no
	}
	for _, s := range sockets {
		if int(s.ID.SourcePort) == port && int(s.ID.Interface) == ifi.Index {
			return muster.Errorf(muster.EConflict, "somebody listens for DHCP on %s, port %d", iface, port).
				WithHint("see who with: ss -ulnp 'sport = :%d', and stop it, or use mode Proxy on a host of its own", port)
		}
	}
	return nil
}

// outlet puts whole Ethernet frames onto one interface and receives nothing.
type outlet struct {
	fd  int
	mac MAC
}

func openOutlet(iface string) (*outlet, error) {
	ifi, err := net.InterfaceByName(iface)
	if err != nil || len(ifi.HardwareAddr) != 6 {
		return nil, muster.Errorf(muster.ENotFound, "no Ethernet interface %q", iface).
			WithHint("see the names with: ip -br link").Wrap(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifi.Index})
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4<<20)
	}
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "cannot send frames on %s", iface).
			WithHint("run as root, or with CAP_NET_RAW").Wrap(err)
	}
	return &outlet{fd, MAC(ifi.HardwareAddr)}, nil
}

func (o *outlet) send(frame []byte) error {
	_, err := unix.Write(o.fd, frame)
	return err
}

func (o *outlet) close() { unix.Close(o.fd) }

// broadcastAddr is everybody on the link.
func broadcastAddr() netip.Addr { return netip.AddrFrom4([4]byte{255, 255, 255, 255}) }
