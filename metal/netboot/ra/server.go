package ra

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Config is what a Server needs.
type Config struct {
	Interface string // the one interface that is served
	// Prefix is a /64 of which machines may make themselves an address, as of
	// fd00::/8, which is routed nowhere. The zero value: none is told.
	Prefix netip.Prefix
}

// Server answers router solicitations on one interface.
type Server struct {
	Config
	ifi *net.Interface
}

// New checks the configuration.
func New(c Config) (*Server, error) {
	ifi, err := net.InterfaceByName(c.Interface)
	if err != nil || len(ifi.HardwareAddr) != 6 {
		return nil, muster.Errorf(muster.ENotFound, "no Ethernet interface %q", c.Interface).
			WithHint("see the names with: ip -br link").Wrap(err)
	}
	if c.Prefix.IsValid() && (c.Prefix.Bits() != 64 || !c.Prefix.Addr().Is6() || c.Prefix.Addr().Is4In6()) {
		return nil, muster.Errorf(muster.EInvalid, "%s is not an IPv6 network of /64", c.Prefix).WithHint("choose one of fd00::/8, or none")
	}
	return &Server{c, ifi}, nil
}

// lifetime is for how long machines keep an address of the prefix.
const lifetime = 2 * time.Hour

// Message is the advertisement (RFC 4861, 4.2). Its router lifetime is 0: this is
// no router. Its checksum is the kernel's to fill in.
func (s *Server) Message() []byte {
	b := []byte{134, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	b = append(b, 1, 1) // source link-layer address
	b = append(b, s.ifi.HardwareAddr...)
	if !s.Prefix.IsValid() {
		return b
	}
	const onLink, autonomous = 0x80, 0x40
	b = append(b, 3, 4, 64, onLink|autonomous)
	b = binary.BigEndian.AppendUint32(b, uint32(lifetime.Seconds()))
	b = binary.BigEndian.AppendUint32(b, 0) // not preferred for new connections
	b = append(b, 0, 0, 0, 0)
	p := s.Prefix.Masked().Addr().As16()
	return append(b, p[:]...)
}

// solicitation says whether b is one that must be answered (RFC 4861, 6.1.1).
func solicitation(b []byte, hops int, from netip.Addr) bool {
	if len(b) < 8 || b[0] != 133 || b[1] != 0 || hops != 255 {
		return false
	}
	for opts := b[8:]; len(opts) > 0; {
		if len(opts) < 2 || opts[1] == 0 || len(opts) < 8*int(opts[1]) {
			return false
		}
		if opts[0] == 1 && from.IsUnspecified() {
			return false
		}
		opts = opts[8*int(opts[1]):]
	}
	return true
}

// perSecond bounds how many advertisements are sent, whoever asks for more.
const perSecond = 1000

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context, ready func()) error {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var inner error
		if err := c.Control(func(fd uintptr) { inner = unix.BindToDevice(int(fd), s.Interface) }); err != nil {
			return err
		}
		return inner
	}}
	pc, err := lc.ListenPacket(ctx, "ip6:ipv6-icmp", "::")
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "cannot listen for router solicitations on %s", s.Interface).
			WithHint("run as root; where IPv6 is switched off, switch these answers off, too").Wrap(err)
	}
	defer func() { _ = pc.Close() }()
	defer context.AfterFunc(ctx, func() { _ = pc.Close() })()
	c := ipv6.NewPacketConn(pc)
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterSolicitation)
	routers := &net.IPAddr{IP: net.ParseIP("ff02::2")}
	for _, err := range []error{
		c.SetICMPFilter(&filter), c.JoinGroup(s.ifi, routers), c.SetMulticastInterface(s.ifi),
		c.SetMulticastHopLimit(255), c.SetHopLimit(255), c.SetControlMessage(ipv6.FlagHopLimit, true),
	} {
		if err != nil {
			return muster.Errorf(muster.EUnavailable, "cannot answer router solicitations on %s", s.Interface).
				WithHint("see with: ip -6 addr show dev %s whether it has an address of fe80::/10", s.Interface).Wrap(err)
		}
	}
	if ready != nil {
		ready()
	}
	return s.answer(ctx, c)
}

func (s *Server) answer(ctx context.Context, c *ipv6.PacketConn) error {
	message := s.Message()
	b := make([]byte, 1500)
	var second time.Time
	var sent int
	for {
		n, control, from, err := c.ReadFrom(b)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		src, ok := netip.AddrFromSlice(from.(*net.IPAddr).IP)
		if !ok || control == nil || !solicitation(b[:n], control.HopLimit, src) {
			continue
		}
		if now := time.Now(); now.Sub(second) >= time.Second {
			second, sent = now, 0
		}
		if sent++; sent > perSecond {
			continue
		}
		to := &net.IPAddr{IP: from.(*net.IPAddr).IP, Zone: s.Interface}
		if src.IsUnspecified() {
			to.IP = net.ParseIP("ff02::1")
		}
		// One that is lost is asked for again.
		_, _ = c.WriteTo(message, nil, to)
	}
}

// unlessEnded is err, but for what a socket says that was told to end.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
