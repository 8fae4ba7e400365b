package boot

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"time"

	"github.com/muster-hpc/muster"
)

// pinned is TLS 1.3 with a server whose authority is known by the SHA-256 of its
// certificate, which the server shows with its own. now is the machine's clock,
// which may be years behind: it is then taken to be the time at which the server's
// certificate begins.
func pinned(host string, authority [32]byte, now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion:       tls.VersionTLS13,
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}, // what the server takes
		ServerName:       host,
		// Not left out: done below, against the one authority.
		InsecureSkipVerify: true,
		VerifyConnection: func(c tls.ConnectionState) error {
			return verify(c.PeerCertificates, host, authority, now())
		},
	}
}

// verify checks a server's certificates.
func verify(certs []*x509.Certificate, host string, authority [32]byte, now time.Time) error {
	ca := withSum(certs, authority)
	if len(certs) == 0 || ca == nil || !ca.IsCA {
		return muster.Errorf(muster.EForbidden, "what answers at the server's address shows another authority than muster.ca says").
			WithHint("another server poses as this one, or the server has a new authority: look who answers DHCP and TFTP here")
	}
	leaf := certs[0]
	if now.Before(leaf.NotBefore) {
		now = leaf.NotBefore
	}
	roots, middle := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(ca)
	for _, c := range certs[1:] {
		middle.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: middle, DNSName: host, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &name):
		return muster.Errorf(muster.EForbidden, "the server's certificate is for another address than %s", host).
			WithHint("name the address with which machines reach the server among those that it serves").Wrap(err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return muster.Errorf(muster.EForbidden, "the server's certificate is not valid at %s", now.UTC().Format(time.DateTime)).
			WithHint("set this machine's clock in its firmware").Wrap(err)
	}
	return muster.Errorf(muster.EForbidden, "the server's certificate is not of the authority that muster.ca says").
		WithHint("another server poses as this one").Wrap(err)
}

func withSum(certs []*x509.Certificate, sum [32]byte) *x509.Certificate {
	for _, c := range certs {
		if got := sha256.Sum256(c.Raw); subtle.ConstantTimeCompare(got[:], sum[:]) == 1 {
			return c
		}
	}
	return nil
}

// authorityPEM is the server's authority as it showed it.
func authorityPEM(c tls.ConnectionState, sum [32]byte) string {
	ca := withSum(c.PeerCertificates, sum)
	if ca == nil {
		return ""
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}))
}

// dialPinned connects to a server, https://ADDRESS:PORT.
func dialPinned(ctx context.Context, server string, authority [32]byte, now func() time.Time) (*tls.Conn, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	at := u.Host
	if u.Port() == "" {
		at = net.JoinHostPort(u.Hostname(), "443")
	}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}, Config: pinned(u.Hostname(), authority, now)}
	c, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		var e *muster.Error
		if errors.As(err, &e) {
			return nil, e
		}
		return nil, muster.Errorf(muster.EUnavailable, "the server %s does not answer", server).Wrap(err)
	}
	return c.(*tls.Conn), nil
}
