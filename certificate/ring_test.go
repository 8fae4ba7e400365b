package certificate_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate"
)

func TestKeysInEveryForm(t *testing.T) {
	t.Parallel()
	one, two := public(t, key(1)), public(t, key(2))
	der, err := x509.MarshalPKIXPublicKey(key(1).Public())
	must(t, err)
	sum := sha256.Sum256(der)
	if want := "sha256:" + hex.EncodeToString(sum[:]); one.ID() != want {
		t.Fatalf("ID %s, want %s", one.ID(), want)
	}
	list, err := json.MarshalIndent(ring(t, key(1), key(2)), "", "  ")
	must(t, err)
	both := ring(t, key(1), key(2))
	for name, c := range map[string]struct {
		text string
		want certificate.Ring
	}{
		"PEM":            {one.PEM(), ring(t, key(1))},
		"two PEM blocks": {"the server's\n" + one.PEM() + "\nthe other one's\n" + two.PEM(), both},
		"the same twice": {one.PEM() + one.PEM(), ring(t, key(1))},
		"base64":         {one.Base64(), ring(t, key(1))},
		"two lines":      {"\n " + one.Base64() + " \r\n" + two.Base64() + "\n\n", both},
		"JSON":           {string(list), both},
	} {
		got, err := certificate.ParseKeys([]byte(c.text))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

func TestNoKeys(t *testing.T) {
	t.Parallel()
	secret, err := x509.MarshalPKCS8PrivateKey(key(1))
	must(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	wrong, err := x509.MarshalPKIXPublicKey(curve.Public())
	must(t, err)
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	one := public(t, key(1))
	for in, want := range map[string]string{
		"":                                   "",
		"ssh-ed25519 AAAA me":                "base64",
		strings.TrimRight(one.Base64(), "="): "base64",
		"AAAA":                               "3 bytes",
		text("PRIVATE KEY", secret):          "private key",
		one.PEM() + text("RSA PRIVATE KEY", secret): "private key",
		text("CERTIFICATE", []byte{1}):              "CERTIFICATE",
		text("PUBLIC KEY", wrong):                   "Ed25519",
		text("PUBLIC KEY", []byte{1}):               "",
		"-----BEGIN PUBLIC KEY-----\n":              "",
		"{":                                         "byte 1",
		`{"keys":[]}`:                               "keys",
		`{"keys":{}}`:                               "",
		`{"certificate":{}}`:                        "keys",
		`{"keys":[{"id":"sha256:00","key":"` + one.Base64() + `"}]}`: "sha256:6b7b",
		`{"keys":[{"id":"sha256:00","key":""}]}`:                     "0 bytes",
		strings.Repeat("A", certificate.MaxKeys+1):                   "",
	} {
		_, err := certificate.ParseKeys([]byte(in))
		if muster.CodeOf(err) != muster.EInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q", in, err, want)
		}
	}
	if _, err := certificate.NewPublicKey(ed25519.PublicKey{1}); muster.CodeOf(err) != muster.EInvalid {
		t.Errorf("a key of one byte: %v", err)
	}
}

// A list that says less never widens one that says more.
func TestJoin(t *testing.T) {
	t.Parallel()
	bare := certificate.NewKey(public(t, key(1)), time.Time{})
	full := bare
	full.From, full.Until, full.Compromised = noon(), noon().Add(time.Hour), noon().Add(2*time.Hour)
	late := full
	late.From, late.Until, late.Compromised = noon().Add(time.Minute), noon().Add(3*time.Hour), noon().Add(3*time.Hour)
	want := full
	want.From = late.From
	other := certificate.NewKey(public(t, key(2)), noon())
	list := func(k ...muster.SigningKey) certificate.Ring { return certificate.Ring{Keys: k} }
	for _, c := range []struct{ a, b, want certificate.Ring }{
		{list(bare), list(full), list(full)},
		{list(full), list(bare), list(full)},
		{list(full), list(late), list(want)},
		{list(late, other), list(full), list(want, other)},
		{list(), list(other), list(other)},
	} {
		if got := c.a.Join(c.b); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v and %+v: got %+v, want %+v", c.a, c.b, got, c.want)
		}
	}
}
