package httpboot

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/connlimit"
)

// Config is what a Server needs.
type Config struct {
	Interface string     // the one interface that is served; empty: any, for tests
	Address   netip.Addr // this server's address on it
	Port      int
	// Base is the URL of this server as machines reach it, ending in "/".
	Base string
	// TLS makes it HTTPS. Firmware and iPXE trust few authorities: see the
	// operator's page before it is set.
	TLS *tls.Config
	// Networks are those whose requests are answered.
	Networks []netip.Prefix
	Boots    Boots
	// Loader are the files of boot loaders by name, for UEFI's HTTP boot.
	Loader map[string][]byte
	// Stall is how long a client may take for a megabyte: 30 s if zero.
	Stall time.Duration
	// Connections at once; 4096 if zero. PerSource of one address; 16 if zero.
	Connections, PerSource int
	// Note is told what was done for an address. May be nil.
	Note func(from netip.Addr, stage, text string)
}

// Server serves boots by HTTP on one interface.
type Server struct {
	Config
	refused atomic.Uint64
}

// New checks the configuration.
func New(c Config) (*Server, error) {
	if c.Boots == nil || !strings.HasSuffix(c.Base, "/") {
		return nil, muster.Errorf(muster.EInvalid, "the boot service needs boots and a base URL that ends in /")
	}
	if c.Stall == 0 {
		c.Stall = 30 * time.Second
	}
	if c.Connections == 0 {
		c.Connections = 4096
	}
	if c.PerSource == 0 {
		c.PerSource = 16
	}
	if c.Note == nil {
		c.Note = func(netip.Addr, string, string) {}
	}
	return &Server{Config: c}, nil
}

// Refused is how many connections were closed at once: from networks that were not
// given, or beyond the limits.
func (s *Server) Refused() uint64 { return s.refused.Load() }

// ServeHTTP answers one request. Whatever it does not know, or the asking machine
// may not have, is not found, with the same words.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, ok := source(r)
	if !ok || !s.given(from) {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "read only", http.StatusMethodNotAllowed)
		return
	}
	what, c, err := s.find(r.URL.Path, from)
	switch {
	case err != nil:
		s.Note(from, "http", "cannot give "+what+": "+err.Error())
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	case c == nil:
		s.Note(from, "http", "refused "+strconv.Quote(r.URL.Path[:min(len(r.URL.Path), 120)]))
		http.NotFound(w, r)
		return
	}
	defer c.close()
	began := time.Now()
	switch sent, err := send(w, r, c, s.Stall); {
	case err != nil:
		s.Note(from, "http", "stopped sending "+what+" after "+time.Since(began).Round(time.Millisecond).String()+": "+reason(err))
		// The length was told: only a closed connection says that it is short.
		panic(http.ErrAbortHandler)
	case r.Method == http.MethodGet:
		size := strconv.FormatInt(sent, 10)
		if sent != c.size { // a piece of it
			size += " of " + strconv.FormatInt(c.size, 10)
		}
		s.Note(from, "http", "sent "+what+", "+size+" bytes in "+time.Since(began).Round(time.Millisecond).String())
	}
}

func reason(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "the machine took nothing for too long"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the file became shorter"
	}
	return "the connection ended"
}

// find is the content that a path means to the machine at that address; nil if
// there is none.
func (s *Server) find(path string, from netip.Addr) (what string, c *content, err error) {
	if name, ok := strings.CutPrefix(path, "/loader/"); ok {
		if file, ok := s.Loader[name]; ok {
			return name, memory(file), nil
		}
		return "", nil, nil
	}
	rest, ok := strings.CutPrefix(path, "/boot/")
	num, file, slash := strings.Cut(rest, "/")
	if !ok || !slash || !number.MatchString(num) {
		return "", nil, nil
	}
	b, ok := s.Boots.Boot(num, from)
	if !ok {
		return "", nil, nil
	}
	switch file {
	case "script":
		text, err := Script(b, s.Base)
		if err != nil {
			return file, nil, err
		}
		return file, memory(text), nil
	case "kernel":
		c, err = compose(b.Kernel)
		return file, c, err
	case "root":
		if b.Root == "" {
			return "", nil, nil
		}
		c, err = compose([]string{b.Root})
		return file, c, err
	case "initramfs":
		c, err = compose(b.Initramfs)
		return file, c, err
	}
	return "", nil, nil
}

func (s *Server) given(a netip.Addr) bool {
	for _, n := range s.Networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

func source(r *http.Request) (netip.Addr, bool) {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	return a.Addr().Unmap(), err == nil
}

// Listen opens the port, on the one interface.
func (s *Server) Listen(ctx context.Context) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		if s.Interface == "" {
			return nil
		}
		var inner error
		if err := c.Control(func(fd uintptr) { inner = unix.BindToDevice(int(fd), s.Interface) }); err != nil {
			return err
		}
		return inner
	}}
	l, err := lc.Listen(ctx, "tcp4", netip.AddrPortFrom(s.Address, uint16(s.Port)).String())
	if err != nil {
		return nil, muster.Errorf(muster.EUnavailable, "cannot listen for HTTP on %s port %d", s.Address, s.Port).
			WithHint("see with: ss -tlnp 'sport = :%d' who has the port, or choose another", s.Port).Wrap(err)
	}
	return l, nil
}

// Serve answers on l until the context ends, and closes it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	l = connlimit.New(l, connlimit.Limits{
		Total: s.Connections, PerAddress: s.PerSource, First: true, Given: s.given, Refused: func() { s.refused.Add(1) },
	})
	if s.TLS != nil {
		l = tls.NewListener(l, s.TLS)
	}
	h := &http.Server{
		Handler:           s,
		ConnContext:       withConn,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      s.Stall, // and again for each slice, in send
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // machines that go away: the notes say it
	}
	defer context.AfterFunc(ctx, func() { _ = h.Close() })()
	if err := h.Serve(l); err != nil && ctx.Err() == nil {
		return muster.Errorf(muster.EUnavailable, "the boot service's HTTP ended").Wrap(err)
	}
	return nil
}
