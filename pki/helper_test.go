package pki

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
)

type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *fakeClock { return &fakeClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *fakeClock) After(time.Duration) <-chan time.Time { return nil }

func openAuthority(t testing.TB, dir string, clock muster.Clock) *Authority {
	t.Helper()
	a, err := OpenAuthority(dir, clock)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func freshAuthority(t testing.TB) (*Authority, *fakeClock) {
	c := newClock()
	return openAuthority(t, filepath.Join(t.TempDir(), "keys"), c), c
}

func wantCode(t testing.TB, err error, code muster.Code) {
	t.Helper()
	if muster.CodeOf(err) != code {
		t.Fatalf("got %v (code %q), want code %q", err, muster.CodeOf(err), code)
	}
	var e *muster.Error
	if errors.As(err, &e) && e.Hint == "" {
		t.Fatalf("%v has no hint", err)
	}
}

func newCSR(t testing.TB, kind string) (string, any) {
	t.Helper()
	var key any
	var err error
	switch kind {
	case "p256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "p384":
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"evil.example"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), key
}

var someNode = NodeIdentity{Machine: "local-03", Cluster: "c-abc", Node: "n01", Attempt: 7}
