package client_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/daemon/controltest"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/wire"
)

// Everything works over TLS as over the socket: replies, streams, tunnels.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	s := controltest.Start(t, controltest.Options{Machines: 2, Build: true})
	token := s.User("alice", "bio")
	authority, err := pki.OpenAuthority(filepath.Join(t.TempDir(), "keys"), muster.SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := s.API.HTTPServer()
	server.TLSConfig = authority.ServerTLS(nil, []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	go func() { _ = server.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte(authority.CertificatePEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "https://" + l.Addr().String()
	make := func(token, ca string) *client.Client {
		k, err := client.New(client.Config{Server: address, Token: token, CA: ca})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(k.Close)
		return k
	}
	k := make(token, ca)
	you, err := k.Server(t.Context())
	if err != nil || you.You != "alice" || you.Admin {
		t.Fatalf("%+v, %v", you, err)
	}
	created, err := k.CreateCluster(t.Context(), client.Create{Body: []byte(`{"name":"cfd","nodes":1,"head":"shared"}`)})
	if err != nil {
		t.Fatal(err)
	}
	follow(t, k, string(created.ID), muster.ClusterReady)
	s.Dialer.To(func(muster.Machine) (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _, _ = io.WriteString(far, "SSH-2.0-x\r\n"); _ = far.Close() }()
		return near, nil
	})
	conn, err := k.Tunnel(t.Context(), "cfd", "n01")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if hello, err := io.ReadAll(conn); err != nil || string(hello) != "SSH-2.0-x\r\n" {
		t.Errorf("%q, %v", hello, err)
	}
	if _, err := make("mst_wrong", ca).Server(t.Context()); muster.CodeOf(err) != muster.EUnauth {
		t.Errorf("a wrong token: %v", err)
	}
	_, err = make(token, "").Server(t.Context())
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != muster.EUnauth || !strings.Contains(e.Hint, "--ca") {
		t.Errorf("an unknown authority: %v", err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	other, err := client.New(client.Config{Server: "https://localhost:" + port, Token: token, CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = other.Server(t.Context())
	if !errors.As(err, &e) || e.Code != muster.EUnauth || !strings.Contains(e.Hint, "127.0.0.1") {
		t.Errorf("another name: %v", err)
	}
	err = k.Events(t.Context(), client.EventOptions{Cluster: "nope", Follow: true}, func(wire.Event) error { return nil })
	if muster.CodeOf(err) != muster.ENotFound {
		t.Errorf("events of nothing: %v", err)
	}
	old := &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // what an old client does
	if c, err := tls.Dial("tcp", l.Addr().String(), old); err == nil {
		c.Close()
		t.Error("TLS 1.2 is taken")
	}
}
