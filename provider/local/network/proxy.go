package network

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muster-hpc/muster/internal/connlimit"
)

// Proxy forwards HTTP requests of machines to public addresses and to nothing
// else: not to the host, not to networks inside the house. What a name
// resolves to is judged, at the moment of connecting.
type Proxy struct {
	// Allow lists host name patterns (*.example.org) that may be reached; empty
	// allows every host that Deny does not name.
	Allow []string
	// Deny lists host name patterns that may not.
	Deny []string
	// Ports that may be reached; empty: 80 and 443.
	Ports []int
	// Permit decides about addresses in addition; nil: PublicAddress. For tests.
	Permit func(netip.Addr) bool
	// Group reports whose an address is (a cluster's); nil: everybody is a group of one.
	Group func(netip.Addr) string
	// Places is how many requests are served at once, of all; 0: 1024. A quarter of
	// them at most are one group's, a sixteenth one address's.
	Places int
	// Idle is how long nothing may pass through a tunnel; 0: five minutes.
	Idle time.Duration
	Log  *slog.Logger
}

const (
	proxyPlacesAll = 1024
	proxyIdle      = 5 * time.Minute
)

// errRefused is the one answer to all that is not reached: what the site's policy or its
// own names and networks have to do with it is nobody's business.
var errRefused = errors.New("this proxy does not reach that: it is not a public host that the site allows")

// Serve answers on ln until ctx ends.
func (p *Proxy) Serve(ctx context.Context, ln net.Listener) error {
	h := newProxyHandler(p)
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, lineKey{}, c) }}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(ln)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lineKey finds the connection over which a request came.
type lineKey struct{}

type proxyHandler struct {
	p      *Proxy
	dialer net.Dialer
	plain  httputil.ReverseProxy
	places proxyPlaces
	log    proxyLog
	idle   time.Duration
}

func newProxyHandler(p *Proxy) *proxyHandler {
	all := p.Places
	if all == 0 {
		all = proxyPlacesAll
	}
	h := &proxyHandler{p: p, idle: p.Idle, log: proxyLog{log: p.Log, every: time.Second, burst: 100},
		places: proxyPlaces{total: all, group: max(1, all/4), node: max(1, all/16)}}
	if h.idle == 0 {
		h.idle = proxyIdle
	}
	// Not by the host's search domains: a name is what it says.
	h.dialer = net.Dialer{Timeout: 15 * time.Second, ControlContext: h.control, Resolver: &net.Resolver{PreferGo: true}}
	h.plain = httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		Transport: &http.Transport{DialContext: h.dial, Proxy: nil, ResponseHeaderTimeout: time.Minute,
			MaxIdleConns: 64, IdleConnTimeout: 30 * time.Second},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			began, _ := r.Context().Value(beganKey{}).(time.Time)
			fail(w, err, began)
		},
	}
	return h
}

// dial connects to a host by its whole name.
func (h *proxyHandler) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err != nil {
		host = strings.TrimSuffix(host, ".") + "."
	}
	return h.dialer.DialContext(ctx, network, net.JoinHostPort(host, port))
}

// who reports from where a request comes, and whose it is.
func (h *proxyHandler) who(r *http.Request) (netip.Addr, string) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, ""
	}
	addr := from.Addr().Unmap()
	if h.p.Group != nil {
		if g := h.p.Group(addr); g != "" {
			return addr, g
		}
	}
	return addr, addr.String()
}

func (h *proxyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	node, group := h.who(r)
	ctx, end := context.WithCancel(r.Context())
	defer end()
	r = r.WithContext(ctx)
	place := h.places.take(group, node, end)
	if place == nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "this cluster has as many connections by the proxy as it may: try again when some have ended", http.StatusServiceUnavailable)
		return
	}
	defer h.places.leave(place)
	if line, ok := r.Context().Value(lineKey{}).(net.Conn); ok {
		connlimit.Known(line, group) // what has a place is not closed for others who only came
	}
	target := r.Host
	if r.Method != http.MethodConnect {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			http.Error(w, "this is a proxy: set http_proxy and ask for a whole URL", http.StatusBadRequest)
			return
		}
		target = r.URL.Host
	}
	host, port, err := splitTarget(target, r.Method == http.MethodConnect)
	if err == nil {
		err = h.p.check(host, port)
	}
	h.log.write(group, "from", r.RemoteAddr, "host", clipHost(host), "port", port, "allowed", err == nil)
	if err != nil {
		fail(w, err, began)
		return
	}
	if r.Method == http.MethodConnect {
		h.tunnel(w, r, net.JoinHostPort(host, strconv.Itoa(port)), place)
		return
	}
	stop := h.watch(place, end)
	defer stop()
	h.plain.ServeHTTP(&touching{ResponseWriter: w, control: http.NewResponseController(w), idle: h.idle, place: place},
		r.WithContext(context.WithValue(r.Context(), beganKey{}, began)))
}

// watch ends a request through which nothing has passed for too long.
func (h *proxyHandler) watch(place *proxyPlace, end func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(max(h.idle/4, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if place.idle() >= h.idle {
					end()
					return
				}
			}
		}
	}()
	return func() { close(done) }
}

// touching notes what passes to a client, and gives up one that takes nothing.
type touching struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration
	place   *proxyPlace
}

// Write writes for a while at most.
func (t *touching) Write(b []byte) (int, error) {
	_ = t.control.SetWriteDeadline(time.Now().Add(t.idle))
	n, err := t.ResponseWriter.Write(b)
	if n > 0 {
		t.place.touch()
	}
	return n, err
}

// Unwrap is for http.ResponseController.
func (t *touching) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// fail answers alike where a name is not there, is the house's own, or is not allowed: who
// asks for names learns nothing of the networks behind this host.
func fail(w http.ResponseWriter, err error, began time.Time) {
	var name *net.DNSError
	if errors.Is(err, errRefused) || errors.As(err, &name) {
		time.Sleep(refusedAfter - time.Since(began)) // a name of the house is found sooner
		http.Error(w, errRefused.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, "it does not answer", http.StatusBadGateway)
}

// refusedAfter is how long after a request the refusal comes, at least.
const refusedAfter = 200 * time.Millisecond

// beganKey reports when a request came.
type beganKey struct{}

// clipHost is a host as it is written down: names are no longer than that.
func clipHost(host string) string { return host[:min(len(host), 253)] }

// splitTarget takes apart host:port; the port of a plain request may be left out.
func splitTarget(target string, needPort bool) (string, int, error) {
	host, text, err := net.SplitHostPort(target)
	if err != nil && !needPort {
		host, text, err = strings.Trim(target, "[]"), "80", nil
	}
	if err != nil {
		return "", 0, errRefused
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 || host == "" {
		return "", 0, errRefused
	}
	return host, port, nil
}

// check judges what can be judged before resolving.
func (p *Proxy) check(host string, port int) error {
	ok := len(p.Ports) == 0 && (port == 80 || port == 443)
	for _, n := range p.Ports {
		ok = ok || n == port
	}
	if !ok {
		return errRefused
	}
	// A name without a dot is one of the house.
	if _, err := netip.ParseAddr(host); err != nil && !strings.Contains(host, ".") {
		return errRefused
	}
	if matches(p.Deny, host) || len(p.Allow) > 0 && !matches(p.Allow, host) {
		return errRefused
	}
	return nil
}

func matches(patterns []string, host string) bool {
	for _, pat := range patterns {
		if ok, err := path.Match(strings.ToLower(pat), host); ok && err == nil {
			return true
		}
	}
	return false
}

// control runs between the making of a socket and its connecting, and sees the
// address that is really meant: no name can change its mind afterwards.
func (h *proxyHandler) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return errRefused
	}
	permit := h.p.Permit
	if permit == nil {
		permit = PublicAddress
	}
	if !permit(ap.Addr()) {
		return errRefused
	}
	return nil
}

// tunnel copies bytes both ways until one end has enough, its place is taken away,
// or nothing has passed for too long.
func (h *proxyHandler) tunnel(w http.ResponseWriter, r *http.Request, target string, place *proxyPlace) {
	began := time.Now()
	out, err := h.dial(r.Context(), "tcp", target)
	if err != nil {
		fail(w, err, began)
		return
	}
	defer func() { _ = out.Close() }()
	hj, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "no tunnel over this protocol", http.StatusHTTPVersionNotSupported)
		return
	}
	in, buf, err := hj.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = in.Close() }()
	stop := context.AfterFunc(r.Context(), func() { _ = in.Close(); _ = out.Close() })
	defer stop()
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var wg sync.WaitGroup
	_ = in.SetDeadline(time.Time{})
	wg.Go(func() { h.pass(out, buf, in, place); closeWrite(out) })
	wg.Go(func() { h.pass(in, out, out, place); closeWrite(in) })
	wg.Wait()
}

// pass copies from one end (whose connection is line) to the other while anything passes,
// one way or the other.
func (h *proxyHandler) pass(to io.Writer, from io.Reader, line net.Conn, place *proxyPlace) {
	b := make([]byte, 32<<10)
	for {
		_ = line.SetReadDeadline(time.Now().Add(h.idle))
		n, err := from.Read(b)
		if n > 0 {
			place.touch()
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		var late net.Error
		if errors.As(err, &late) && late.Timeout() && place.idle() < h.idle {
			continue // the other way is in use
		}
		if err != nil {
			return
		}
	}
}

func closeWrite(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}
