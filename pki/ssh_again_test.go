package pki_test

import (
	"testing"
	"time"

	"github.com/muster-hpc/muster/pki"
)

// A host that is told its configuration again gets the certificate that it has.
func TestHostCertificatesComeOutTheSame(t *testing.T) {
	t.Parallel()
	a, err := pki.NewSSHAuthority()
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := pki.NewHostKey()
	if err != nil {
		t.Fatal(err)
	}
	sign := func(ttl time.Duration, names ...string) string {
		c, err := a.SignHost(key, names, ttl)
		if err != nil {
			t.Fatal(err)
		}
		return pki.Line(c)
	}
	years := 5 * 365 * 24 * time.Hour
	first := sign(years, "n01", "10.128.16.10")
	if sign(years, "n01", "10.128.16.10") != first {
		t.Error("another certificate for the same host")
	}
	if sign(years, "n01", "10.128.16.11") == first {
		t.Error("the same certificate for another address")
	}
	if one, other := sign(time.Hour, "n01"), sign(time.Hour, "n01"); one == other {
		t.Error("two short certificates are one")
	}
}
