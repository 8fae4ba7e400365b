package redfish

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

// old is a controller whose TLS is that; it answers nothing of Redfish's.
func old(t *testing.T, conf *tls.Config) (port int, cert *x509.Certificate) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "controller"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	conf.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	s.Config.ErrorLog = nil
	s.TLS = conf
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port, cert
}

// A controller whose certificate is pinned may be old. With one that is only signed by
// somebody, today's TLS is spoken, and what is wrong is told.
func TestOldControllers(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string]*tls.Config{
		"key exchange by RSA": {MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_AES_256_GCM_SHA384}},
		"TLS 1.0":             {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}},
		"TLS 1.1":             {MinVersion: tls.VersionTLS11, MaxVersion: tls.VersionTLS11},
	} {
		port, cert := old(t, conf)
		get := func(change func(*muster.PowerAddress)) (answer, error) {
			a := muster.PowerAddress{Kind: muster.PowerRedfish, Address: fmt.Sprintf("127.0.0.1:%d", port), User: "admin"}
			change(&a)
			c, err := newClient(a)
			if err != nil {
				t.Fatal(err)
			}
			return c.do(t.Context(), http.MethodGet, "/redfish/v1/", nil, nil)
		}
		if got, err := get(func(a *muster.PowerAddress) { a.CertificateSHA256 = fmt.Sprintf("%x", sha256.Sum256(cert.Raw)) }); err != nil || got.status != http.StatusTeapot {
			t.Errorf("%s, pinned: %+v, %v", name, got, err)
		}
		if _, err := get(func(a *muster.PowerAddress) { a.CertificateSHA256 = strings.Repeat("00", 32) }); muster.CodeOf(err) != muster.EUnauth {
			t.Errorf("%s, pinned wrongly: %v", name, err)
		}
		_, err := get(func(a *muster.PowerAddress) {
			a.Authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
		})
		text, hint := muster.Explain(err)
		if muster.CodeOf(err) != muster.EUnavailable || !strings.Contains(text, "TLS") || !strings.Contains(hint, "certificate_sha256") {
			t.Errorf("%s, signed: %q, %q", name, text, hint)
		}
	}
}

// What answers without TLS, and what does not answer at all, are told apart.
func TestNoTLS(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	_ = l.Close()
	for address, want := range map[string]string{plain.Listener.Addr().String(): "speaks no TLS", nobody: "connection refused"} {
		c, err := newClient(muster.PowerAddress{Kind: muster.PowerRedfish, Address: address, User: "admin", CertificateSHA256: strings.Repeat("00", 32)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.do(t.Context(), http.MethodGet, "/redfish/v1/", nil, nil)
		if text, _ := muster.Explain(err); !strings.Contains(text, want) || muster.ReasonOf(err) != muster.ReasonControllerUnreachable {
			t.Errorf("%s: %q", address, text)
		}
	}
}
