package agentserver_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// line is a bench that serves over real connections.
type line struct {
	*bench
	addr   string
	client *http.Client
	end    func() error
}

func newLine(t testing.TB, hosts int, change ...func(*agentserver.Config)) *line {
	t.Helper()
	return newLineOn(t, hosts, func(l net.Listener) net.Listener { return l }, change...)
}

// newLineOn serves on what on makes of a listener.
func newLineOn(t testing.TB, hosts int, on func(net.Listener) net.Listener, change ...func(*agentserver.Config)) *line {
	t.Helper()
	b := newBench(t, append(change, func(c *agentserver.Config) {
		c.Clock = &ahead{}
		build := c.Configure
		c.Configure = func(ctx context.Context, id muster.ClusterID, node string) (wire.NodeConfig, error) {
			cfg, err := build(ctx, id, node)
			for i := range hosts {
				cfg.Hosts = append(cfg.Hosts, wire.Host{Name: fmt.Sprintf("n%05d", i), Address: "10.0.0.1"})
			}
			return cfg, err
		}
	})...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- b.srv.Serve(ctx, on(ln), b.authority.NodeTLS([]string{"muster"}, []netip.Addr{netip.MustParseAddr("127.0.0.1")}))
	}()
	x := &line{bench: b, addr: ln.Addr().String()}
	x.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: b.authority.Pool()}}, Timeout: 20 * time.Second}
	x.end = func() error { cancel(); return <-done }
	t.Cleanup(func() { cancel(); x.client.CloseIdleConnections() })
	return x
}

// ahead is a clock by which nobody asks too often.
type ahead struct {
	muster.SystemClock
	looks atomic.Int64
}

func (c *ahead) Now() time.Time {
	return time.Now().Add(time.Duration(c.looks.Add(1)) * 100 * time.Millisecond)
}

// ask sends a request and reports whether the connection was used before.
func (x *line) ask(method, path, body string) (code int, text string, again bool) {
	x.t.Helper()
	ctx := httptrace.WithClientTrace(x.t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { again = i.Reused }})
	r, err := http.NewRequestWithContext(ctx, method, "https://"+x.addr+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	w, err := x.client.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return w.StatusCode, string(b), again
}

func TestServe(t *testing.T) {
	x := newLine(t, 5000)
	id := pki.NodeIdentity{Machine: machine, Attempt: 1, Cluster: cluster, Node: "n01"}
	x.identity.Store(&id)
	x.boot(1, time.Minute)
	if code, text, _ := x.ask("GET", "/nowhere", ""); code != http.StatusNotFound {
		t.Fatal(code, text)
	}
	for i := range 3 { // one connection, with silence between
		code, text, again := x.ask("POST", "/v1/report", `{"attempt":1,"generation":1,"state":"ready"}`)
		if code != http.StatusOK || !again || !strings.Contains(text, `"interval_seconds"`) {
			t.Fatalf("report %d: %d %s, on the same connection: %v", i, code, text, again)
		}
		time.Sleep(20 * time.Millisecond)
	}
	code, text, again := x.ask("GET", "/v1/config", "") // a long answer
	if code != http.StatusOK || !again || !strings.Contains(text, "n04999") {
		t.Fatal(code, len(text), again)
	}
	if code, text, again := x.ask("POST", "/v1/report", `{"attempt":1,"state":"ready"}`); code != http.StatusOK || !again {
		t.Fatal(code, text, again)
	}
	if code, _, _ := x.ask("POST", "/nowhere", strings.Repeat("x", 1<<20)); code != http.StatusNotFound {
		t.Fatal(code)
	}
	began := time.Now()
	if err := x.end(); err != nil || time.Since(began) > time.Minute {
		t.Fatal(err, time.Since(began))
	}
}

// TestWatchEndsWithItsConnection has agents hang up that wait for news: nothing
// stays of their requests, though they might have waited for another hour.
func TestWatchEndsWithItsConnection(t *testing.T) {
	x := newLine(t, 0, func(c *agentserver.Config) { c.WatchTime = time.Hour })
	x.boot(1, time.Minute)
	x.identity.Store(&pki.NodeIdentity{Machine: machine, Attempt: 1, Cluster: cluster, Node: "n01"})
	watch := func() (*net.TCPConn, *tls.Conn) {
		raw, err := net.Dial("tcp", x.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = raw.Close() })
		_ = raw.SetDeadline(time.Now().Add(30 * time.Second))
		conn := tls.Client(raw, &tls.Config{RootCAs: x.authority.Pool(), ServerName: "127.0.0.1"})
		if _, err := io.WriteString(conn, "GET /v1/watch?generation=1 HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return raw.(*net.TCPConn), conn
	}
	stays, stayed := watch()
	for i := range 3 {
		raw, conn := watch()
		if i > 0 { // as an agent that ends: TLS says so before the connection does
			_ = conn.CloseWrite()
		}
		if err := raw.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		// The server hangs up, too; unread words of the agent make that a reset.
		if _, err := io.Copy(io.Discard, raw); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("watch %d: %v", i, err)
		}
	}
	x.generation.Store(2)
	x.srv.ConfigChanged(cluster)
	head := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(stayed, head); err != nil || string(head) != "HTTP/1.1 200" {
		t.Fatalf("the watch of another agent: %q, %v", head, err)
	}
	_ = stays.Close()
	if err := x.end(); err != nil {
		t.Fatal(err)
	}
}

// A watch may wait for longer than other requests have.
func TestWatchOutlastsOtherRequests(t *testing.T) {
	t.Parallel()
	const others = 2 * time.Second
	b := joined(t, func(c *agentserver.Config) { c.WatchTime = others * 3 / 2 })
	srv := httptest.NewUnstartedServer(b.srv)
	srv.Config.ReadTimeout, srv.Config.WriteTimeout = others, others
	srv.Start()
	t.Cleanup(srv.Close)
	w, err := srv.Client().Get(srv.URL + "/v1/watch?generation=1")
	if err != nil {
		t.Fatal(err)
	}
	if _ = w.Body.Close(); w.StatusCode != http.StatusNoContent {
		t.Errorf("it ended early: %d", w.StatusCode)
	}
}

// A defect costs the one connection on which it happens.
func TestADefectEndsItsConnection(t *testing.T) {
	var defect atomic.Bool
	x := newLine(t, 0, func(c *agentserver.Config) {
		build := c.Configure
		c.Configure = func(ctx context.Context, id muster.ClusterID, node string) (wire.NodeConfig, error) {
			if defect.Load() {
				panic("a defect")
			}
			return build(ctx, id, node)
		}
	})
	x.boot(1, time.Minute)
	x.identity.Store(&pki.NodeIdentity{Machine: machine, Attempt: 1, Cluster: cluster, Node: "n01"})
	x.ask("GET", "/v1/config", "")
	defect.Store(true)
	if w, err := x.client.Get("https://" + x.addr + "/v1/config"); err == nil {
		_ = w.Body.Close()
		t.Errorf("answered %d", w.StatusCode)
	}
	defect.Store(false)
	if code, text, _ := x.ask("GET", "/v1/config", ""); code != http.StatusOK {
		t.Error(code, text)
	}
}

// scarce is a listener that has no connection to give at first.
type scarce struct {
	net.Listener
	left atomic.Int64
}

func (l *scarce) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.ENOMEM}
	}
	return l.Listener.Accept()
}

// A host that is short of something for a moment does not end the server.
func TestAcceptGoesOn(t *testing.T) {
	t.Parallel()
	x := newLineOn(t, 0, func(l net.Listener) net.Listener {
		s := &scarce{Listener: l}
		s.left.Store(3)
		return s
	})
	if code, text, _ := x.ask("GET", "/nowhere", ""); code != http.StatusNotFound {
		t.Error(code, text)
	}
	if err := x.end(); err != nil {
		t.Error(err)
	}
}

// TestServeStrangers sends what no agent sends.
func TestServeStrangers(t *testing.T) {
	x := newLine(t, 0)
	for name, c := range map[string]struct{ say, want string }{
		"nonsense":           {"hello\r\n\r\n", "HTTP/1.1 400 "},
		"a head without end": {"GET / HTTP/1.1\r\nA: " + strings.Repeat("x", 64<<10), "HTTP/1.1 431 "},
		"an old client":      {"GET /nowhere HTTP/1.0\r\n\r\n", "HTTP/1.0 404 "},
		"a later HTTP":       {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 400 "},
		"nothing":            {"", ""},
		"two at once":        {strings.Repeat("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", 2), "HTTP/1.1 404 "},
		"it waits for leave": {"POST /v1/join HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 100 "},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", x.addr, &tls.Config{RootCAs: x.authority.Pool()})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(conn, c.say) // it may be closed before the end
			_ = conn.CloseWrite()
			got, _ := io.ReadAll(conn)
			if !bytes.HasPrefix(got, []byte(c.want)) || c.want == "" && len(got) > 0 {
				t.Errorf("got %.60q", got)
			}
			if name == "two at once" && bytes.Count(got, []byte(" 404 ")) != 2 {
				t.Errorf("got %q", got)
			}
		})
	}
	raw, err := net.Dial("tcp", x.addr) // no TLS
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, _ = io.WriteString(raw, "GET / HTTP/1.1\r\n\r\n")
	_ = raw.SetReadDeadline(time.Now().Add(time.Minute))
	if got, err := io.ReadAll(raw); !bytes.HasPrefix(got, []byte("HTTP/1.0 400 ")) || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("got %q, %v", got, err)
	}
	if err := x.end(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkReport is what a heartbeat with what the node uses costs: without a
// connection, and over one that is there, with the client's part.
func BenchmarkReport(b *testing.B) {
	x := newLine(b, 0)
	x.boot(1, time.Hour)
	id := pki.NodeIdentity{Machine: machine, Attempt: 1, Cluster: cluster, Node: "n01"}
	x.identity.Store(&id)
	body := `{"attempt":1,"generation":1,"boot_id":"b","state":"ready","checks":[{"name":"sshd","ok":true}],` +
		`"usage":{"at":"2026-01-02T03:04:05Z","cpu_user":1.25,"cpu_system":0.25,"load1":1.5,"memory_used_bytes":123456789,"memory_total_bytes":68719476736,` +
		`"net_rx_bytes":123456789,"net_tx_bytes":123456789,"disk_used_bytes":5368709120,"disk_total_bytes":429496729600,"processes":211}}`
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			w := httptest.NewRecorder()
			x.srv.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/report", strings.NewReader(body)))
			if w.Code != http.StatusOK {
				b.Fatal(w.Code, w.Body)
			}
		}
	})
	b.Run("connected", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if code, text, _ := x.ask("POST", "/v1/report", body); code != http.StatusOK {
				b.Fatal(code, text)
			}
		}
	})
}
