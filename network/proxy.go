package network

import (
	"context"
	"errors"
	"fmt"
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
	Log    *slog.Logger
}

// proxyLimit is how many connections the proxy serves at once.
const proxyLimit = 512

var errRefused = errors.New("refused by policy")

// Serve answers on ln until ctx ends.
func (p *Proxy) Serve(ctx context.Context, ln net.Listener) error {
	h := &proxyHandler{p: p, slots: make(chan struct{}, proxyLimit)}
	h.dialer = net.Dialer{Timeout: 15 * time.Second, ControlContext: h.control}
	h.plain = httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		Transport: &http.Transport{DialContext: h.dialer.DialContext, Proxy: nil, ResponseHeaderTimeout: time.Minute,
			MaxIdleConns: 64, IdleConnTimeout: 30 * time.Second},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { fail(w, err) },
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(ln)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type proxyHandler struct {
	p      *Proxy
	dialer net.Dialer
	plain  httputil.ReverseProxy
	slots  chan struct{}
}

func (h *proxyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		http.Error(w, "the proxy is busy: try again", http.StatusServiceUnavailable)
		return
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
	if h.p.Log != nil {
		h.p.Log.Info("egress", "from", r.RemoteAddr, "host", host, "port", port, "allowed", err == nil)
	}
	if err != nil {
		fail(w, err)
		return
	}
	if r.Method == http.MethodConnect {
		h.tunnel(w, r, net.JoinHostPort(host, strconv.Itoa(port)))
		return
	}
	h.plain.ServeHTTP(w, r)
}

func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, errRefused) {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, "cannot reach it", http.StatusBadGateway)
}

// splitTarget takes apart host:port; the port of a plain request may be left out.
func splitTarget(target string, needPort bool) (string, int, error) {
	host, text, err := net.SplitHostPort(target)
	if err != nil && !needPort {
		host, text, err = strings.Trim(target, "[]"), "80", nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("%w: no host and port", errRefused)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 || host == "" {
		return "", 0, fmt.Errorf("%w: no host and port", errRefused)
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
		return fmt.Errorf("%w: port %d", errRefused, port)
	}
	if matches(p.Deny, host) || len(p.Allow) > 0 && !matches(p.Allow, host) {
		return fmt.Errorf("%w: host %s", errRefused, host)
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
		return fmt.Errorf("%w: %s", errRefused, address)
	}
	permit := h.p.Permit
	if permit == nil {
		permit = PublicAddress
	}
	if !permit(ap.Addr()) {
		return fmt.Errorf("%w: the address is not public", errRefused)
	}
	return nil
}

// tunnel copies bytes both ways until one end has enough.
func (h *proxyHandler) tunnel(w http.ResponseWriter, r *http.Request, target string) {
	out, err := h.dialer.DialContext(r.Context(), "tcp", target)
	if err != nil {
		fail(w, err)
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
	wg.Go(func() { _, _ = io.Copy(out, buf); closeWrite(out) })
	wg.Go(func() { _, _ = io.Copy(in, out); closeWrite(in) })
	wg.Wait()
}

func closeWrite(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}
