package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/atomicfile"
	"github.com/muster-hpc/muster/internal/connlimit"
)

// serveAPI listens on the socket of the state directory and, if asked to, over
// TLS. Whoever connects waits for an answer until ready is closed.
func (s *Server) serveAPI(ctx context.Context, g *errgroup.Group, ready <-chan struct{}) error {
	path := s.state.path("muster.sock")
	// We hold the lock: a socket that is there is a dead server's.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "cannot listen on %s", path).Because(muster.ReasonAddressInUse).
			WithHint("a path of a socket has at most 107 characters: is the state directory's too long?").Wrap(err)
	}
	// Who may connect is decided by the peer's user ID; the directory is 0700.
	srv := s.httpServer()
	serve(ctx, g, srv, func() error {
		<-ready
		return srv.Serve(ln)
	})
	if s.cfg.Listen == "" {
		return nil
	}
	return s.serveTLS(ctx, g, ready)
}

// serveTLS listens for those who come over the network.
func (s *Server) serveTLS(ctx context.Context, g *errgroup.Group, ready <-chan struct{}) error {
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "cannot listen on %s", s.cfg.Listen).Because(muster.ReasonAddressInUse).WithHint("choose another --listen ADDRESS:PORT").Wrap(err)
	}
	ca := s.state.path("ca.pem")
	if err := keepFile(ca, s.authority.CertificatePEM()); err != nil {
		return errors.Join(err, tcp.Close())
	}
	names, ips := s.names(tcp.Addr())
	tcp = connlimit.New(tcp, apiPlaces(s.files))
	over := s.httpServer()
	over.TLSConfig = s.authority.ServerTLS(names, ips)
	serve(ctx, g, over, func() error {
		<-ready
		return over.ServeTLS(tcp, "", "")
	})
	s.listening.Store(tcp.Addr().String())
	s.log.Info("TLS listener started", "address", tcp.Addr(), "authority", ca)
	return nil
}

func (s *Server) httpServer() *http.Server {
	srv := s.api.HTTPServer()
	srv.ErrorLog = quiet(s.log)
	return srv
}

// names are what the server's certificate is valid for.
func (s *Server) names(a net.Addr) (names []string, ips []netip.Addr) {
	names = []string{"localhost"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	ips = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}
	if ap, err := netip.ParseAddrPort(a.String()); err == nil && !ap.Addr().IsUnspecified() {
		return names, append(ips, ap.Addr().Unmap())
	}
	all, _ := net.InterfaceAddrs()
	for _, one := range all {
		if p, err := netip.ParsePrefix(one.String()); err == nil && !p.Addr().IsLoopback() {
			ips = append(ips, p.Addr())
		}
	}
	return names, ips
}

// serve runs an HTTP server until ctx ends. Event streams and watches end then
// by themselves; what else goes on is cut, as it may last for ever.
func serve(ctx context.Context, g *errgroup.Group, srv *http.Server, run func() error) {
	g.Go(func() error {
		err := run()
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
	g.Go(func() error {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 300*time.Millisecond)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			return srv.Close()
		}
		return nil
	})
}

// quiet sends what net/http complains of (a broken handshake) to the log at a
// level that strangers cannot fill the disk with.
func quiet(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }

// keepFile writes a file unless it says the same already: a server must come up
// on a full disk too.
func keepFile(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	return atomicfile.ReplaceVolatile(path, []byte(text), 0o644)
}
