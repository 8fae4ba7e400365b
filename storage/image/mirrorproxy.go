package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// mirrorProxy is the only way out of the network namespace in which packages are
// downloaded: to the mirrors that the build names, and where they send it on.
type mirrorProxy struct {
	upstream func(*url.URL) (*url.URL, error) // the host's own proxy for a mirror, nil for none
	server   *http.Server
	dialer   net.Dialer

	mu      sync.Mutex
	allowed map[string]bool // host:port
}

// newMirrorProxy makes a proxy to the places that texts (lines of sources.list) name.
func newMirrorProxy(texts []string, upstream func(*url.URL) (*url.URL, error)) *mirrorProxy {
	p := &mirrorProxy{upstream: upstream, allowed: map[string]bool{}, dialer: net.Dialer{Timeout: 30 * time.Second}}
	for _, u := range urlsIn(texts) {
		p.allow(u)
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, // the address is the mirror's already
		Transport: &http.Transport{
			Proxy:       func(r *http.Request) (*url.URL, error) { return upstream(r.URL) },
			DialContext: p.dialer.DialContext, DisableCompression: true, ResponseHeaderTimeout: 2 * time.Minute,
		},
		ModifyResponse: p.follow,
	}
	p.server = &http.Server{ReadHeaderTimeout: 30 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target := r.URL
		if r.Method == http.MethodConnect {
			target = &url.URL{Scheme: "https", Host: r.Host}
		}
		switch {
		case !p.may(target):
			http.Error(w, fmt.Sprintf("%s is not a mirror of this build", target.Host), http.StatusForbidden)
		case r.Method == http.MethodConnect:
			p.tunnel(w, r, target)
		case r.URL.Scheme == "http":
			forward.ServeHTTP(w, r)
		default:
			http.Error(w, "this is a proxy for package mirrors", http.StatusBadRequest)
		}
	})}
	return p
}

// urlsIn finds the addresses of mirrors in texts.
func urlsIn(texts []string) []*url.URL {
	var out []*url.URL
	for _, text := range texts {
		for _, word := range regexp.MustCompile(`https?://[^\s"'\]]+`).FindAllString(text, -1) {
			if u, err := url.Parse(word); err == nil && u.Host != "" {
				out = append(out, u)
			}
		}
	}
	return out
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

func (p *mirrorProxy) allow(u *url.URL) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed[hostPort(u)] = true
}

func (p *mirrorProxy) may(u *url.URL) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allowed[hostPort(u)]
}

// follow lets the build go where a mirror sends it.
func (p *mirrorProxy) follow(r *http.Response) error {
	if to, err := r.Location(); err == nil && r.StatusCode >= 300 && r.StatusCode < 400 {
		p.allow(to)
	}
	return nil
}

// tunnel connects a client with a mirror that speaks TLS.
func (p *mirrorProxy) tunnel(w http.ResponseWriter, r *http.Request, to *url.URL) {
	out, err := p.dial(r.Context(), to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = out.Close() }()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = in.Close() }()
	if _, err := io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	pipe := func(to io.Writer, from io.Reader) { _, _ = io.Copy(to, from); done <- struct{}{} }
	go pipe(out, buffered)
	go pipe(in, out)
	<-done
}

// dial connects to a mirror, by the host's own proxy if it has one.
func (p *mirrorProxy) dial(ctx context.Context, to *url.URL) (net.Conn, error) {
	via, err := p.upstream(to)
	if err != nil {
		return nil, err
	}
	if via == nil {
		return p.dialer.DialContext(ctx, "tcp", hostPort(to))
	}
	c, err := p.dialer.DialContext(ctx, "tcp", hostPort(via))
	if err != nil {
		return nil, err
	}
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: hostPort(to)}, Host: hostPort(to), Header: http.Header{}}
	if via.User != nil {
		word, _ := via.User.Password()
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(via.User.Username(), word)
		ask.Header.Set("Proxy-Authorization", r.Header.Get("Authorization"))
	}
	if err := ask.Write(c); err != nil {
		_ = c.Close()
		return nil, err
	}
	return afterConnect(c)
}

// afterConnect reads a proxy's answer byte by byte: what follows it is the mirror's.
func afterConnect(c net.Conn) (net.Conn, error) {
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	var head []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); head = append(head, one[0]) {
		if _, err := io.ReadFull(c, one); err != nil || len(head) > 64<<10 {
			_ = c.Close()
			return nil, errors.Join(errors.New("the proxy of this host gives no answer"), err)
		}
	}
	_ = c.SetReadDeadline(time.Time{})
	if status, _, _ := strings.Cut(string(head), "\r\n"); !strings.Contains(status, " 200 ") && !strings.HasSuffix(status, " 200") {
		_ = c.Close()
		return nil, fmt.Errorf("the proxy of this host answers %q", status)
	}
	return c, nil
}

// mirrorPort is where the proxy listens, in the namespace of the build.
const mirrorPort = "3128"

// mirrorEnvironment leads programs to it.
func mirrorEnvironment() []string {
	at := "http://127.0.0.1:" + mirrorPort
	return []string{"http_proxy=" + at, "https_proxy=" + at, "HTTP_PROXY=" + at, "HTTPS_PROXY=" + at}
}

// listen puts the calling thread into a network namespace in which there is nothing but
// the proxy. close ends the proxy.
func (p *mirrorProxy) listen() (closeProxy func(), err error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("a network namespace: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return nil, fmt.Errorf("loopback of a network namespace: %w", err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:"+mirrorPort) //nolint:noctx // answers at once, on this very thread
	if err != nil {
		return nil, err
	}
	go func() { _ = p.server.Serve(l) }()
	return func() { _ = p.server.Close() }, nil
}

// loopbackUp switches the loopback of the calling thread's network namespace on.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
