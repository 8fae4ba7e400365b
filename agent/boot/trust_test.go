package boot

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// authority signs certificates of servers.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

func (a authority) sum() [32]byte { return sha256.Sum256(a.cert.Raw) }

// server has a certificate for an address; shown is added to what it shows.
func (a authority) server(t *testing.T, ip string, from, to time.Duration, h http.Handler, shown ...authority) *httptest.Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.ParseIP(ip)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	chain := [][]byte{der, a.cert.Raw}
	for _, s := range shown {
		chain = append(chain, s.cert.Raw)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = nil
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// Only a server of the one authority is spoken to, for the one address.
func TestPinned(t *testing.T) {
	t.Parallel()
	a, b := newAuthority(t), newAuthority(t)
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(wire.BootReply{Protocol: 1})
	})
	for name, c := range map[string]struct {
		server *httptest.Server
		sum    [32]byte
		now    time.Duration
		says   string
	}{
		"right":             {a.server(t, "127.0.0.1", -time.Minute, time.Minute, answer), a.sum(), 0, ""},
		"clock behind":      {a.server(t, "127.0.0.1", -time.Minute, time.Minute, answer), a.sum(), -20 * 365 * 24 * time.Hour, ""},
		"clock ahead":       {a.server(t, "127.0.0.1", -time.Minute, time.Minute, answer), a.sum(), 24 * time.Hour, "valid"},
		"another authority": {b.server(t, "127.0.0.1", -time.Minute, time.Minute, answer), a.sum(), 0, "authority"},
		// It shows the right authority's certificate, which anybody can have.
		"poses":           {b.server(t, "127.0.0.1", -time.Minute, time.Minute, answer, a), a.sum(), 0, "authority"},
		"another address": {a.server(t, "127.0.0.2", -time.Minute, time.Minute, answer), a.sum(), 0, "address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := NewServer(Settings{Server: c.server.URL, Authority: c.sum, Boot: "b-0000-0001"}, "1", func() time.Time { return time.Now().Add(c.now) })
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.CheckIn(t.Context(), wire.BootCheckIn{})
			if c.says == "" && (err != nil || !strings.Contains(s.CA(), "BEGIN CERTIFICATE")) {
				t.Errorf("%v", err)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v", err)
			}
			// The same holds for images.
			err = newWeb(c.server.URL, "k", c.sum, s.Now).Read(t.Context(), "x", 0, 1, io.Discard)
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("image: %v", err)
			}
		})
	}
}

// A refusal of the server is told in its words, without what could harm a terminal.
func TestRefused(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, c := range []struct {
		status int
		body   string
		code   muster.Code
		says   string
	}{
		{403, `{"code":"forbidden","message":"another MAC\u001b[2J","hint":"h"}`, muster.EForbidden, "another MAC�[2J"},
		{409, `x`, muster.EConflict, "409 Conflict"},
		{503, ``, muster.EUnavailable, "503"},
		{200, `{"protocol":9}`, muster.EInvalid, "protocol"},
	} {
		srv := a.server(t, "127.0.0.1", -time.Minute, time.Minute, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		s, err := NewServer(Settings{Server: srv.URL, Authority: a.sum()}, "1", time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.CheckIn(t.Context(), wire.BootCheckIn{Address: netip.MustParseAddr("10.0.0.1")}); muster.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d: %v", c.status, err)
		}
	}
}

// A source gives ranges, over the wire.
func TestWeb(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	b, _ := content(200_000)
	var header string
	srv := a.server(t, "127.0.0.1", -time.Minute, time.Minute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Get("Authorization")
		switch r.URL.Path {
		case wire.BootFilePath + "root":
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
		case wire.BootFilePath + "whole": // knows no ranges
			_, _ = w.Write(b)
		case wire.BootFilePath + "other":
			w.Header().Set("Content-Range", "bytes 5-9/100")
			w.WriteHeader(http.StatusPartialContent)
		case wire.BootFilePath + "moved":
			http.Redirect(w, r, "https://127.0.0.1:1/x", http.StatusFound)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	s := newWeb(srv.URL, "the-key", a.sum(), time.Now)
	var got bytes.Buffer
	if err := s.Read(t.Context(), "root", 1000, 150_000, &got); err != nil || !bytes.Equal(got.Bytes(), b[1000:150_000]) || header != "Bearer the-key" {
		t.Errorf("%d bytes, %q: %v", got.Len(), header, err)
	}
	for file, code := range map[string]muster.Code{"whole": muster.EUnavailable, "other": muster.EUnavailable, "moved": muster.EUnavailable, "gone": muster.EForbidden} {
		if err := s.Read(t.Context(), file, 1000, 2000, io.Discard); muster.CodeOf(err) != code || strings.Contains(err.Error(), "the-key") {
			t.Errorf("%s: %v", file, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Read(ctx, "root", 0, 10, io.Discard); err == nil {
		t.Error("read after the end")
	}
}
