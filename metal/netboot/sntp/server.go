package sntp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Port is NTP's.
const Port = 123

// Strata say how far a clock is from a true one: a host that is kept by one, and one that
// nobody keeps, of which only counts that all ask the same.
const (
	stratumKept = 4
	stratumFree = 10
)

// Config of a Server.
type Config struct {
	Interface string         // the one that is served
	Address   netip.Addr     // the server's own there, IPv4
	Networks  []netip.Prefix // that are answered
	Port      int            // Port of this package if 0
	// Listen opens a UDP socket of IPv4 elsewhere than on the interface; nil: there.
	Listen func(ctx context.Context) (net.PacketConn, error)
	Now    func() time.Time // nil: time.Now
}

// Server answers with the time of its host. Make it with New.
type Server struct {
	Config
	refused atomic.Uint64
	kept    func() bool // the host's clock is kept by a true one
}

// New checks the configuration: EInvalid.
func New(c Config) (*Server, error) {
	if !c.Address.Is4() {
		return nil, muster.Errorf(muster.EInvalid, "%s is not an IPv4 address", c.Address).WithHint("give the server's own address on that interface")
	}
	if c.Port == 0 {
		c.Port = Port
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Server{Config: c, kept: synchronized}, nil
}

// Refused is how many packets were left unanswered: from networks that were not given, or
// that are no questions.
func (s *Server) Refused() uint64 { return s.refused.Load() }

// bound makes a socket see one interface only.
func (s *Server) bound(_, _ string, c syscall.RawConn) error {
	var inner error
	if err := c.Control(func(fd uintptr) { inner = unix.BindToDevice(int(fd), s.Interface) }); err != nil {
		return err
	}
	return inner
}

// Serve answers until the context ends. Where another program of this host has the port, that
// is a time daemon, and Serve leaves it to it. ready is called once it listens; it may be nil.
func (s *Server) Serve(ctx context.Context, ready func()) error {
	listen := s.Listen
	if listen == nil {
		lc := net.ListenConfig{Control: s.bound}
		listen = func(ctx context.Context) (net.PacketConn, error) {
			return lc.ListenPacket(ctx, "udp4", net.JoinHostPort(s.Address.String(), strconv.Itoa(s.Port)))
		}
	}
	pc, err := listen(ctx)
	if errors.Is(err, unix.EADDRINUSE) {
		// This host has a time daemon, which serves machines better than this would.
		if ready != nil {
			ready()
		}
		<-ctx.Done()
		return nil
	}
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "cannot listen for NTP on %s port %d", s.Address, s.Port).
			WithHint("run the server as root").Wrap(err)
	}
	conn := pc.(*net.UDPConn)
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if ready != nil {
		ready()
	}
	stratum, looked := byte(stratumFree), time.Time{}
	b := make([]byte, 512)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		received := s.Now()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		q, err := parse(b[:n])
		if err != nil || !slices.ContainsFunc(s.Networks, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap()) }) {
			s.refused.Add(1)
			continue
		}
		if received.Sub(looked) > time.Minute {
			if looked, stratum = received, stratumFree; s.kept() {
				stratum = stratumKept
			}
		}
		// Who does not get it asks again.
		_, _ = conn.WriteToUDPAddrPort(answer(q, stratum, received, s.Now()), from)
	}
}

// synchronized reports whether the kernel knows that a time daemon keeps its clock.
func synchronized() bool {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
}
