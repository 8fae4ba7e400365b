package api_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api"
	"github.com/muster-hpc/muster/daemon/controltest"
)

// crowd asks one server, with one connection of HTTP/2 or many of HTTP/1.1.
type crowd struct {
	t    *testing.T
	url  string
	http *http.Client
}

// crowds are a crowd over TLS by each protocol, for a site with few places.
func crowds(t *testing.T, l api.Limits) (*controltest.Site, map[string]crowd) {
	s := controltest.Start(t, controltest.Options{API: func(c *api.Config) { c.Limits, c.BodyTime = l, time.Minute }})
	server := httptest.NewUnstartedServer(nil)
	server.Config = s.API.HTTPServer()
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(s.API.Close)
	out := map[string]crowd{}
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		c := server.Client().Transport.(*http.Transport).Clone()
		c.ForceAttemptHTTP2, c.ExpectContinueTimeout = http2, time.Minute
		if !http2 {
			c.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
			c.TLSClientConfig.NextProtos = []string{"http/1.1"}
		}
		out[name] = crowd{t, server.URL, &http.Client{Transport: c}}
	}
	return s, out
}

func (c crowd) request(ctx context.Context, token, method, path string, body io.Reader) *http.Request {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}

// ask makes a request that ends.
func (c crowd) ask(token, path string) answer {
	c.t.Helper()
	resp, err := c.http.Do(c.request(c.t.Context(), token, http.MethodGet, path, nil))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{resp.StatusCode, string(body), resp.Header}
}

// hold begins a request whose body does not end until end is called, and returns when the
// server waits for it.
func (c crowd) hold(token, path string) (end func()) {
	c.t.Helper()
	body, write := io.Pipe()
	waits := make(chan struct{})
	ctx := httptrace.WithClientTrace(c.t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(waits) }})
	req := c.request(ctx, token, http.MethodPost, path, body)
	req.Header.Set("Expect", "100-continue")
	over := make(chan struct{})
	go func() {
		defer close(over)
		if resp, err := c.http.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	select {
	case <-waits:
	case <-over:
		c.t.Fatal("a request that should have been let in was not")
	}
	return func() { _ = write.Close(); <-over }
}

// stream opens a stream of events; status 200 means that it lives.
func (c crowd) stream(token string) (status int, header http.Header, end func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	c.t.Cleanup(cancel)
	resp, err := c.http.Do(c.request(ctx, token, http.MethodGet, "/v1/events", nil))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.StatusCode, resp.Header, cancel
}

func refusedAsTooMany(t *testing.T, a answer, bound string) {
	t.Helper()
	var e muster.Error
	if err := json.Unmarshal([]byte(a.body), &e); err != nil || a.status != http.StatusTooManyRequests || e.Reason != muster.ReasonTooManyRequests ||
		a.header.Get("Retry-After") != "1" || !strings.Contains(e.Message, bound) || e.Hint == "" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
}

// One user has so many requests under way, by however many connections, and keeps out
// nobody else; the administrator of the host is never kept out.
func TestRequestsOfOneUser(t *testing.T) {
	t.Parallel()
	s, by := crowds(t, api.Limits{Brief: 3, All: 5})
	alice, bob, eve := s.User("alice", "bio"), s.User("bob", "cfd"), s.User("eve", "cfd")
	for name, c := range by {
		var ends []func()
		for range 3 {
			ends = append(ends, c.hold(alice, "/v1/clusters"))
		}
		for other, c := range by { // whichever way she comes
			if a := c.ask(alice, "/v1/server"); a.status != http.StatusTooManyRequests {
				t.Errorf("%s, then %s: %d", name, other, a.status)
			}
		}
		refusedAsTooMany(t, c.ask(alice, "/v1/server"), " 3 ")
		if a := c.ask(bob, "/v1/server"); a.status != http.StatusOK {
			t.Errorf("%s: another user: %d %s", name, a.status, a.body)
		}
		// All together are bounded, but for the administrator.
		ends = append(ends, c.hold(bob, "/v1/clusters"), c.hold(bob, "/v1/clusters"))
		refusedAsTooMany(t, c.ask(eve, "/v1/server"), " 5 ")
		if a := ask(t, s, "", "GET", "/v1/server", "", ""); a.status != http.StatusOK {
			t.Errorf("%s: the administrator: %d %s", name, a.status, a.body)
		}
		if a := ask(t, s, alice, "GET", "/v1/server", "", ""); a.status != http.StatusTooManyRequests {
			t.Errorf("%s: the socket with a token: %d", name, a.status)
		}
		for _, end := range ends {
			end()
		}
		if a := c.ask(alice, "/v1/server"); a.status != http.StatusOK {
			t.Errorf("%s: once they are over: %d %s", name, a.status, a.body)
		}
	}
}

// What lives (streams, tunnels, consoles) counts apart: it takes no place of what is asked.
func TestWhatLivesCountsApart(t *testing.T) {
	t.Parallel()
	s, by := crowds(t, api.Limits{Brief: 1, Long: 2})
	alice := s.User("alice", "bio")
	c := by["HTTP/2.0"]
	var ends []func()
	for range 2 {
		status, _, end := c.stream(alice)
		if status != http.StatusOK {
			t.Fatal(status)
		}
		ends = append(ends, end)
	}
	if status, header, _ := c.stream(alice); status != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
		t.Errorf("a third stream: %d %v", status, header)
	}
	if a := c.ask(alice, "/v1/server"); a.status != http.StatusOK {
		t.Errorf("a request beside streams: %d %s", a.status, a.body)
	}
	// A tunnel is one more of them.
	req := by["HTTP/1.1"].request(t.Context(), alice, http.MethodGet, "/v1/clusters/x/nodes/head/tunnel", nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "muster-tunnel")
	tunnel := func() int {
		resp, err := by["HTTP/1.1"].http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if status := tunnel(); status != http.StatusTooManyRequests {
		t.Errorf("a tunnel: %d", status)
	}
	ends[0]()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if status := tunnel(); status == http.StatusNotFound { // there is no such cluster: it was asked for
			break
		} else if time.Now().After(end) {
			t.Fatalf("the place of a stream that ended is not given back: %d", status)
		}
	}
}

// Of one address so many strangers have requests under way; who shows a token from there
// is answered.
func TestRequestsOfStrangers(t *testing.T) {
	t.Parallel()
	s, by := crowds(t, api.Limits{Stranger: 2})
	alice := s.User("alice", "bio")
	for name, c := range by {
		ends := []func(){c.hold("", "/v1/health"), c.hold("", "/v1/health")}
		refusedAsTooMany(t, c.ask("", "/v1/health"), "(2)")
		if a := c.ask(alice, "/v1/server"); a.status != http.StatusOK {
			t.Errorf("%s: a user of that address: %d %s", name, a.status, a.body)
		}
		if a := ask(t, s, "", "GET", "/v1/health", "", ""); a.status != http.StatusOK {
			t.Errorf("%s: the host: %d", name, a.status)
		}
		for _, end := range ends {
			end()
		}
		if a := c.ask("", "/v1/health"); a.status != http.StatusOK {
			t.Errorf("%s: once they are over: %d %s", name, a.status, a.body)
		}
	}
}

// A connection of HTTP/2 carries so many requests, and no more.
func TestStreamsOfAConnection(t *testing.T) {
	t.Parallel()
	_, by := crowds(t, api.Limits{})
	c, err := tls.Dial("tcp", strings.TrimPrefix(by["HTTP/2.0"].url, "https://"), &tls.Config{NextProtos: []string{"h2"}, InsecureSkipVerify: true}) //nolint:gosec // only its settings are read
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 9)
	if _, err := io.ReadFull(c, head); err != nil || head[3] != 4 {
		t.Fatalf("no settings: %x, %v", head, err)
	}
	settings := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(c, settings); err != nil {
		t.Fatal(err)
	}
	for ; len(settings) >= 6; settings = settings[6:] {
		if settings[1] == 3 { // SETTINGS_MAX_CONCURRENT_STREAMS
			if n := int(settings[4])<<8 | int(settings[5]); n != 256 {
				t.Errorf("%d streams of one connection", n)
			}
			return
		}
	}
	t.Error("the streams of a connection are not bounded")
}
