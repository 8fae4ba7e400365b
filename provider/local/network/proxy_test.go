package network_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"testing"

	"github.com/muster-hpc/muster/provider/local/network"
)

// client starts a proxy and returns a client that uses it.
func client(t *testing.T, p *network.Proxy) *http.Client {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: ln.Addr().String()})}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestProxy(t *testing.T) {
	t.Parallel()
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.Host) })
	plain, secure := httptest.NewServer(hello), httptest.NewTLSServer(hello)
	defer plain.Close()
	defer secure.Close()
	port := func(s *httptest.Server) int {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(u.Port())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ports := []int{port(plain), port(secure)}
	all := func(netip.Addr) bool { return true }
	tests := []struct {
		name  string
		proxy *network.Proxy
		ok    bool
	}{
		{"open", &network.Proxy{Ports: ports, Permit: all}, true},
		{"allowed host", &network.Proxy{Ports: ports, Permit: all, Allow: []string{"127.0.*"}}, true},
		{"other host", &network.Proxy{Ports: ports, Permit: all, Allow: []string{"*.example.org"}}, false},
		{"denied host", &network.Proxy{Ports: ports, Permit: all, Deny: []string{"127.*"}}, false},
		{"denied port", &network.Proxy{Permit: all}, false},
		{"address of this host", &network.Proxy{Ports: ports}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := client(t, tt.proxy)
			tr, ok := c.Transport.(*http.Transport)
			if !ok {
				t.Fatal("no transport")
			}
			st, _ := secure.Client().Transport.(*http.Transport)
			tr.TLSClientConfig = st.TLSClientConfig
			for _, s := range []*httptest.Server{plain, secure} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				res, err := c.Do(req)
				good := err == nil && res.StatusCode == http.StatusOK
				if err == nil {
					_ = res.Body.Close()
				}
				if good != tt.ok {
					t.Errorf("%s: %v", s.URL, err)
				}
			}
		})
	}
}

func TestPublicAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"9.9.9.9": true, "2620:fe::fe": true, "127.0.0.1": false, "10.1.2.3": false, "192.168.0.1": false,
		"172.31.0.1": false, "169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "224.0.0.1": false,
		"255.255.255.255": false, "::1": false, "fe80::1": false, "fd00::1": false, "::ffff:10.0.0.1": false,
		"64:ff9b::a00:1": false, "2002:a00:1::": false, "::10.0.0.1": false,
	} {
		if got := network.PublicAddress(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestManagementAddress(t *testing.T) {
	t.Parallel()
	seen := map[netip.Addr]bool{network.Gateway(): true}
	for i := range 65533 {
		a, err := network.ManagementAddress(i)
		if err != nil || seen[a] || !netip.MustParsePrefix("10.90.0.0/16").Contains(a) {
			t.Fatal(i, a, err)
		}
		seen[a] = true
	}
	for _, i := range []int{-1, 65533, 1 << 30} {
		if a, err := network.ManagementAddress(i); err == nil {
			t.Error(i, a)
		}
	}
}
