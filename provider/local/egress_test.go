package local_test

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/local/network"
)

// TestEgress sees that the proxy is there for those that may use it.
func TestEgress(t *testing.T) {
	t.Parallel()
	p := open(t, "2,memory=1GiB", withScript(t, `
timeout 2 bash -c 'exec 3<>/dev/tcp/10.90.0.1/3128; printf "GET http://127.0.0.1/ HTTP/1.0\r\n\r\n" >&3; head -n 1 <&3' >/share/out 2>&1 || echo no proxy >>/share/out
touch /share/done`))
	ln, err := p.Rack().Listen(t.Context(), netip.AddrPortFrom(network.Gateway(), network.ProxyPort))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- (&network.Proxy{}).Serve(ctx, ln) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	a := provider.Network{Cluster: "c-a", Index: 0, Subnet: netip.MustParsePrefix("10.128.0.0/20"), Egress: muster.EgressProxy}
	b := provider.Network{Cluster: "c-b", Index: 1, Subnet: netip.MustParsePrefix("10.128.16.0/20"), Egress: muster.EgressNone}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{a, b}); err != nil {
		t.Fatal(err)
	}
	w := wants(2, &a)
	w[1].Boot.Message = &provider.Attachment{Network: b, Address: netip.MustParsePrefix("10.128.16.1/20")}
	out := share(t, w)
	if errs := p.Ensure(t.Context(), w); errs != nil {
		t.Fatal(errs)
	}
	if text := out(0); !strings.Contains(text, " 403 ") {
		t.Errorf("with leave to use the proxy: %s", text)
	}
	if text := out(1); !strings.Contains(text, "no proxy") {
		t.Errorf("without: %s", text)
	}
	// The place of a machine that had leave is taken by one that has none.
	w[0].Boot.Attempt, w[0].Boot.Message.Network.Egress = 2, muster.EgressNone
	for _, f := range []string{"done", "out"} {
		if err := os.Remove(w[0].Boot.Shares[0].Path + "/" + f); err != nil {
			t.Fatal(err)
		}
	}
	if errs := p.Ensure(t.Context(), w[:1]); errs != nil {
		t.Fatal(errs)
	}
	if text := out(0); !strings.Contains(text, "no proxy") {
		t.Errorf("the leave of its predecessor: %s", text)
	}
}

// TestNoForwarding sees that nat is refused with advice where it cannot be.
func TestNoForwarding(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	if err != nil || strings.TrimSpace(string(b)) != "0" {
		t.Skip("this host forwards packets, and a test does not go out through it")
	}
	p := open(t, "1,memory=1GiB", nil)
	n := provider.Network{Cluster: "c-a", Subnet: netip.MustParsePrefix("10.128.0.0/20"), Egress: muster.EgressNAT}
	if err := p.EnsureNetworks(t.Context(), []provider.Network{n}); err != nil {
		t.Fatal(err)
	}
	errs := p.Ensure(t.Context(), wants(1, &n))
	if len(errs) != 1 || muster.CodeOf(errs[0]) != muster.EConflict || !strings.Contains(errs[0].Error(), "forwards") {
		t.Error(errs)
	}
}
