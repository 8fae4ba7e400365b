package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster/internal/connlimit"
)

// One cluster takes all that it can get; every other still gets places, and nobody loses
// one to it.
func TestPlacesAreShared(t *testing.T) {
	t.Parallel()
	s := proxyPlaces{total: 64, group: 40, node: 20}
	var ended atomic.Int32
	take := func(group string, node byte) *proxyPlace {
		return s.take(group, netip.AddrFrom4([4]byte{10, 90, 0, node}), func() { ended.Add(1) })
	}
	hold := 0
	for i := range 200 {
		if take("greedy", byte(i%5)) != nil {
			hold++
		}
	}
	if hold != 40 {
		t.Errorf("one cluster holds %d places of 64, want its bound of 40", hold)
	}
	hold = 0
	for range 100 {
		if take("other", 9) != nil {
			hold++
		}
	}
	if hold != 20 {
		t.Errorf("one node holds %d places, want its bound of 20", hold)
	}
	for g := range 10 {
		if take(fmt.Sprintf("small-%d", g), byte(20+g)) == nil {
			t.Errorf("small cluster %d gets no place", g)
		}
	}
	if n := ended.Load(); n != 6 { // 64 places, of which 60 were taken
		t.Errorf("%d places were taken away, want 6", n)
	}
	if got := len(s.groups["greedy"]); got != 34 {
		t.Errorf("the greedy cluster has %d left, want 34: it had the most", got)
	}
	p := take("late", 99)
	s.leave(p)
	s.leave(p)
	if s.used != 63 {
		t.Errorf("%d places are in use, want 63", s.used)
	}
}

// What is refused, what does not exist and what the house alone knows look alike.
func TestOneRefusal(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = (&Proxy{Deny: []string{"*.denied.example"}}).Serve(ctx, ln) }()
	answer := func(method, target string) string {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		if method == http.MethodConnect {
			_, _ = fmt.Fprintf(c, "CONNECT %s:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", target)
		} else {
			_, _ = fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, target)
		}
		b, _ := io.ReadAll(c)
		var lines []string
		for line := range strings.Lines(string(b)) {
			if !strings.HasPrefix(line, "Date:") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	for _, method := range []string{http.MethodConnect, http.MethodGet} {
		want := answer(method, "www.denied.example")
		if !strings.Contains(want, "403 Forbidden") {
			t.Fatalf("%s: a denied host is answered by %q", method, want)
		}
		for _, target := range []string{"localhost", "intranet", "127.0.0.1", "10.1.2.3", "[::1]", "no-such-host.invalid", "localhost.localdomain"} {
			if got := answer(method, target); got != want {
				t.Errorf("%s %s is told apart: %q, not %q", method, target, got, want)
			}
		}
	}
}

// A tunnel through which nothing passes gives its place back; one in use does not.
func TestIdleTunnels(t *testing.T) {
	t.Parallel()
	far := echo(t)
	h := newProxyHandler(&Proxy{Ports: []int{far.Port}, Idle: 300 * time.Millisecond, Permit: func(netip.Addr) bool { return true }})
	srv := httptest.NewServer(h)
	defer srv.Close()
	open := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		tunnelTo(t, c, far)
		return c
	}
	used, idle := open(), open()
	defer used.Close()
	defer idle.Close()
	for range 12 {
		_, _ = used.Write([]byte("x"))
		_ = used.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := used.Read(make([]byte, 1)); err != nil {
			t.Fatalf("a tunnel in use ended: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	_ = idle.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("an idle tunnel stays: %v", err)
	}
}

// A cluster that asks without end fills no disk, and what was left out is told.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := proxyLog{log: slog.New(slog.NewTextHandler(&b, nil)), every: time.Second, burst: 10}
	began := time.Now()
	for range 5000 {
		l.write("loud", "host", strings.Repeat("x", 200))
	}
	most := 10 + int(time.Since(began)/l.every)
	l.write("quiet", "host", "example.org")
	if n := strings.Count(b.String(), "host=xxx"); n < 10 || n > most || !strings.Contains(b.String(), "example.org") {
		t.Errorf("%d lines of 5000 were written", n)
	}
	time.Sleep(l.every + 100*time.Millisecond)
	l.write("loud", "host", "last")
	said := strings.Count(b.String(), "host=xxx")
	for _, m := range regexp.MustCompile(`suppressed=([0-9]+)`).FindAllStringSubmatch(b.String(), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		said += n
	}
	if said != 5000 {
		t.Errorf("%d of 5000 are told: %s", said, b.String()[max(0, b.Len()-300):])
	}
}

// Connections that only come take no place from those of others who are served.
func TestServedConnectionsStay(t *testing.T) {
	t.Parallel()
	far := echo(t)
	bare, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := &Proxy{Ports: []int{far.Port}, Permit: func(netip.Addr) bool { return true }}
	go func() { _ = p.Serve(ctx, connlimit.New(bare, connlimit.Limits{Total: 8, PerAddress: 4, PerName: 4})) }()
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.DialContext(t.Context(), "tcp4", bare.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	mine := dial("127.0.0.2")
	tunnelTo(t, mine, far)
	for i := range 40 { // of other clusters' nodes, which say nothing
		dial(fmt.Sprintf("127.0.0.%d", 3+i%5))
	}
	_, _ = mine.Write([]byte("x"))
	_ = mine.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(mine, make([]byte, 1)); err != nil {
		t.Errorf("a tunnel was closed for connections that only came: %v", err)
	}
}

// A client that asks for much and reads nothing gives its place back.
func TestPlainRequestsEnd(t *testing.T) {
	t.Parallel()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("begin"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer silent.Close()
	port := func(s *httptest.Server) int { return s.Listener.Addr().(*net.TCPAddr).Port }
	h := newProxyHandler(&Proxy{Ports: []int{port(endless), port(silent)}, Idle: 300 * time.Millisecond, Permit: func(netip.Addr) bool { return true }})
	srv := httptest.NewServer(h)
	defer srv.Close()
	for _, to := range []*httptest.Server{endless, silent} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = fmt.Fprintf(c, "GET %s/ HTTP/1.1\r\nHost: x\r\n\r\n", to.URL)
	}
	used := func() int {
		h.places.mu.Lock()
		defer h.places.mu.Unlock()
		return h.places.used
	}
	for end := time.Now().Add(2 * time.Minute); used() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	for end := time.Now().Add(2 * time.Minute); used() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d places are still taken", used())
		}
	}
}

// What was left out is told though nothing more comes.
func TestUnsaidIsTold(t *testing.T) {
	t.Parallel()
	var b lockedBuffer
	l := proxyLog{log: slog.New(slog.NewTextHandler(&b, nil)), every: time.Millisecond, burst: 1}
	for range 50 {
		l.write("loud", "host", "x")
	}
	for end := time.Now().Add(2 * time.Minute); !strings.Contains(b.String(), "suppressed="); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("what was left out is not told: %s", b.String())
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// echo is a server that says what it hears.
func echo(t *testing.T) *net.TCPAddr {
	t.Helper()
	far, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	go func() {
		for {
			c, err := far.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return far.Addr().(*net.TCPAddr)
}

// tunnelTo asks a proxy for a tunnel.
func tunnelTo(t *testing.T, c net.Conn, far *net.TCPAddr) {
	t.Helper()
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", far)
	b := make([]byte, 1024)
	if n, err := c.Read(b); err != nil || !strings.Contains(string(b[:n]), "200") {
		t.Fatalf("no tunnel: %q, %v", b[:n], err)
	}
}
