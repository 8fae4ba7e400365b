package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"pgregory.net/rapid"
)

// endpoint listens like the agent endpoint and answers with the identity of
// whoever connects.
func endpoint(t *testing.T, a *Authority) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", a.NodeTLS([]string{"muster"}, []netip.Addr{netip.MustParseAddr("127.0.0.1")}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s := c.(*tls.Conn)
				if s.Handshake() != nil {
					return
				}
				state := s.ConnectionState()
				id, err := NodeFromTLS(&state)
				if err != nil {
					_, _ = io.WriteString(c, "nobody")
					return
				}
				_, _ = io.WriteString(c, id.URI())
			}()
		}
	}()
	return l.Addr().String()
}

func dial(addr string, c *tls.Config) (string, error) {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", addr, c)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	b, err := io.ReadAll(conn)
	return string(b), err
}

func client(a *Authority, clock *fakeClock, cert ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: a.Pool(), Time: clock.Now, Certificates: cert, ServerName: "muster"}
}

func nodeCert(t *testing.T, a *Authority, kind string, ttl time.Duration) tls.Certificate {
	t.Helper()
	csr, key := newCSR(t, kind)
	text, _, err := a.SignNode(csr, someNode, ttl)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := pem.Decode([]byte(text))
	return tls.Certificate{Certificate: [][]byte{b.Bytes}, PrivateKey: key}
}

func TestNodeTLS(t *testing.T) {
	t.Parallel()
	a, clock := freshAuthority(t)
	addr := endpoint(t, a)
	for _, kind := range []string{"p256", "ed25519"} {
		if got, err := dial(addr, client(a, clock, nodeCert(t, a, kind, 0))); err != nil || got != someNode.URI() {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
	}
	if got, err := dial(addr, client(a, clock)); err != nil || got != "nobody" {
		t.Errorf("without a certificate: %q, %v", got, err)
	}
	old := client(a, clock)
	old.MaxVersion = tls.VersionTLS12
	if _, err := dial(addr, old); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
	other, _ := freshAuthority(t)
	forged := nodeCert(t, other, "p256", 0)
	pushy := client(a, clock)
	pushy.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &forged, nil }
	if got, err := dial(addr, pushy); err == nil && got != "" {
		t.Errorf("a certificate of another site: %q", got)
	}
	if _, err := dial(addr, client(other, clock)); err == nil {
		t.Error("a client of another site trusts this server")
	}
	// A server certificate is no node, and a node certificate is no server.
	server, err := a.ServerCertificate([]string{"muster"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := dial(addr, client(a, clock, server)); err == nil && got != "" && got != "nobody" {
		t.Errorf("a server certificate speaks for %q", got)
	}
	leaf, err := x509.ParseCertificate(nodeCert(t, a, "p256", 0).Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: a.Pool(), CurrentTime: clock.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("a node can pose as a server")
	}
	if leaf.IsCA || len(leaf.DNSNames) > 0 {
		t.Errorf("the request got through: %+v", leaf)
	}
}

func TestNodeCertificateExpires(t *testing.T) {
	t.Parallel()
	a, clock := freshAuthority(t)
	addr := endpoint(t, a)
	cert := nodeCert(t, a, "p256", 0)
	clock.add(NodeTTL - time.Minute)
	if got, err := dial(addr, client(a, clock, cert)); err != nil || got != someNode.URI() {
		t.Errorf("a minute before its end: %q, %v", got, err)
	}
	clock.add(2 * time.Minute)
	if got, err := dial(addr, client(a, clock, cert)); err == nil && got != "" {
		t.Errorf("a minute after its end: %q", got)
	}
	csr, _ := newCSR(t, "p256")
	for ttl, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, 0: NodeTTL, 365 * 24 * time.Hour: NodeTTL} {
		if _, expires, err := a.SignNode(csr, someNode, ttl); err != nil || !expires.Equal(clock.Now().Add(want)) {
			t.Errorf("a ttl of %v ends at %v (now %v), %v", ttl, expires, clock.Now(), err)
		}
	}
}

func TestSignNodeRefuses(t *testing.T) {
	t.Parallel()
	a, _ := freshAuthority(t)
	good, _ := newCSR(t, "p256")
	b, _ := pem.Decode([]byte(good))
	b.Bytes[len(b.Bytes)-3] ^= 1
	for name, csr := range map[string]string{
		"empty": "", "text": "hello", "rsa": first(newCSR(t, "rsa")), "p384": first(newCSR(t, "p384")),
		"two": good + good, "leading": "x\n" + good, "trailing": good + "x", "bad signature": string(pem.EncodeToMemory(b)),
		"long": good + strings.Repeat("\n", maxCSR), "certificate": a.CertificatePEM(),
		"headers": strings.Replace(good, "REQUEST-----\n", "REQUEST-----\nA: b\n\n", 1),
	} {
		if _, _, err := a.SignNode(csr, someNode, 0); muster.CodeOf(err) != muster.EInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []NodeIdentity{{}, {Machine: "a/b", Cluster: "c", Node: "n", Attempt: 1}, {Machine: "a", Cluster: "c", Node: "n"}} {
		if _, _, err := a.SignNode(good, id, 0); err == nil {
			t.Errorf("signed for %+v", id)
		}
	}
	_, err := NodeFromTLS(nil)
	wantCode(t, err, muster.EUnauth)
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,127}`)
	rapid.Check(t, func(r *rapid.T) {
		id := NodeIdentity{
			Machine: muster.MachineID(name.Draw(r, "machine")), Cluster: muster.ClusterID(name.Draw(r, "cluster")),
			Node: name.Draw(r, "node"), Attempt: rapid.Int64Min(1).Draw(r, "attempt"),
		}
		if got, err := ParseIdentity(id.URI()); err != nil || got != id {
			r.Fatalf("%+v becomes %+v, %v", id, got, err)
		}
	})
	for _, bad := range []string{
		"", "muster://", "https://machine/a/cluster/b/node/c/attempt/1", "muster://machine/a/cluster/b/node/c/attempt/0",
		"muster://machine/a/cluster/b/node/c/attempt/01", "muster://machine/a/cluster/b/node/c/attempt/+1",
		"muster://machine/a/cluster/b/node/c/attempt/1/", "muster://machine//cluster/b/node/c/attempt/1",
		"muster://machine/a/cluster/b/node/../attempt/1", "muster://machine/%61/cluster/b/node/c/attempt/1",
		"MUSTER://machine/a/cluster/b/node/c/attempt/1", "muster://machine/a/cluster/b/node/c/attempt/1?x", "muster://u@machine/a/cluster/b/node/c/attempt/1",
	} {
		if id, err := ParseIdentity(bad); err == nil {
			t.Errorf("%q is %+v", bad, id)
		}
	}
}

func FuzzParseIdentity(f *testing.F) {
	f.Add(someNode.URI())
	f.Add("muster://machine/a/cluster/b/node/c/attempt/9223372036854775808")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseIdentity(s); err == nil && id.URI() != s {
			t.Errorf("%q becomes %q", s, id.URI())
		}
	})
}

func FuzzSignNode(f *testing.F) {
	a, _ := freshAuthority(f)
	for _, kind := range []string{"p256", "ed25519", "p384"} {
		f.Add(first(newCSR(f, kind)))
	}
	f.Fuzz(func(t *testing.T, csr string) {
		text, _, err := a.SignNode(csr, someNode, 0)
		if err != nil {
			wantCode(t, err, muster.EInvalid)
			return
		}
		b, rest := pem.Decode([]byte(text))
		leaf, err := x509.ParseCertificate(b.Bytes)
		if err != nil || len(bytes.TrimSpace(rest)) > 0 || leaf.IsCA || len(leaf.URIs) != 1 || leaf.URIs[0].String() != someNode.URI() || len(leaf.DNSNames) > 0 {
			t.Errorf("signed %+v, %v", leaf, err)
		}
	})
}

func FuzzParseAuthority(f *testing.F) {
	data, err := makeAuthority(time.Now())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := parseAuthority(b); err == nil && !a.key.PublicKey.Equal(a.cert.PublicKey) {
			t.Error("key and certificate differ")
		}
	})
}
