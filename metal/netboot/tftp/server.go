package tftp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Config is what a Server needs.
type Config struct {
	Interface string     // the one interface that is served
	Address   netip.Addr // this server's address on it
	Port      int        // 69 if zero
	// Files by name. A name has no slash at its beginning.
	Files map[string][]byte
	// Networks are those whose requests are answered.
	Networks []netip.Prefix
	// Transfers at once; 512 if zero. Requests beyond are not answered, and asked
	// again by the client a little later: so a storm queues and does not fail.
	Transfers int
	// Note is told what was done for an address. May be nil.
	Note func(to netip.Addr, stage, text string)
}

// Limits of one transfer.
const (
	maxWindow   = 64 // packets under way: what a network card's queue holds
	perSource   = 8  // transfers of one address at once
	retries     = 6
	firstResend = time.Second
	maxResend   = 8 * time.Second
)

// Server serves files by TFTP on one interface.
type Server struct {
	Config
	mtu     int
	mu      sync.Mutex
	running map[netip.Addr]int
	total   int
	refused atomic.Uint64
}

// New checks the configuration.
func New(c Config) (*Server, error) {
	ifi, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, muster.Errorf(muster.ENotFound, "no interface %q", c.Interface).
			WithHint("see the names with: ip -br link").Wrap(err)
	}
	if !c.Address.Is4() {
		return nil, muster.Errorf(muster.EInvalid, "%s is not an IPv4 address", c.Address).WithHint("give the server's own address on that interface")
	}
	if c.Port == 0 {
		c.Port = 69
	}
	if c.Transfers == 0 {
		c.Transfers = 512
	}
	if c.Note == nil {
		c.Note = func(netip.Addr, string, string) {}
	}
	return &Server{Config: c, mtu: ifi.MTU, running: map[netip.Addr]int{}}, nil
}

// Refused is how many requests were left unanswered: from networks that were not
// given, or beyond the number of transfers.
func (s *Server) Refused() uint64 { return s.refused.Load() }

// bound makes a socket see one interface only.
func (s *Server) bound(_, _ string, c syscall.RawConn) error {
	var inner error
	if err := c.Control(func(fd uintptr) {
		inner = unix.BindToDevice(int(fd), s.Interface)
		// What does not fit is asked for again.
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<20)
	}); err != nil {
		return err
	}
	return inner
}

// Serve answers until the context ends; then transfers end, too.
func (s *Server) Serve(ctx context.Context, ready func()) error {
	lc := net.ListenConfig{Control: s.bound}
	pc, err := lc.ListenPacket(ctx, "udp4", netip.AddrPortFrom(s.Address, uint16(s.Port)).String())
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "cannot listen for TFTP on %s port %d", s.Address, s.Port).
			WithHint("run as root, and see with: ss -ulnp 'sport = :%d' who has the port", s.Port).Wrap(err)
	}
	conn := pc.(*net.UDPConn)
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if ready != nil {
		ready()
	}
	var transfers sync.WaitGroup
	defer transfers.Wait()
	b := make([]byte, maxRequest+1)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if !s.given(from.Addr()) {
			s.refused.Add(1)
			continue
		}
		r, err := parseRequest(b[:n])
		if err != nil {
			s.deny(conn, from, codeOther, err.Error())
			continue
		}
		file, ok := s.Files[r.name]
		if !ok {
			s.Note(from.Addr(), "tftp", "no file "+strconv.Quote(shorten(r.name)))
			s.deny(conn, from, codeNotFound, "no such file")
			continue
		}
		if !s.enter(from.Addr()) {
			s.refused.Add(1)
			continue
		}
		transfers.Go(func() {
			defer s.leave(from.Addr())
			s.transfer(ctx, from, r, file)
		})
	}
}

func shorten(s string) string { return s[:min(len(s), 80)] }

func (s *Server) given(a netip.Addr) bool {
	for _, n := range s.Networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

func (s *Server) deny(c *net.UDPConn, to netip.AddrPort, code byte, text string) {
	// A lost refusal is asked for again.
	_, _ = c.WriteToUDPAddrPort(appendError(make([]byte, 0, 64), code, text), to)
}

func (s *Server) enter(a netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.Transfers || s.running[a] >= perSource {
		return false
	}
	s.total++
	s.running[a]++
	return true
}

func (s *Server) leave(a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.running[a]--; s.running[a] == 0 {
		delete(s.running, a)
	}
}
