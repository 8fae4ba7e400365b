package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// serverCertificate is issued when first asked for and replaced in time. Its
// key lives only in memory: every start of the server makes a new one.
type serverCertificate struct {
	tls   tls.Certificate
	renew time.Time
}

// ServerCertificate returns a certificate for these names and addresses, the
// same one until two thirds of its life are over and then a new one.
func (a *Authority) ServerCertificate(names []string, ips []netip.Addr) (tls.Certificate, error) {
	key := strings.Join(names, ",")
	for _, ip := range ips {
		key += "|" + ip.String()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	if s := a.servers[key]; s != nil && now.Before(s.renew) {
		return s.tls, nil
	}
	c, err := a.issueServer(names, ips)
	if err != nil {
		return tls.Certificate{}, muster.Errorf(muster.EInternal, "no server certificate could be made").
			WithHint("this is a bug in Muster: please report it with the server's log").Wrap(err)
	}
	life := c.Leaf.NotAfter.Sub(now)
	a.servers[key] = &serverCertificate{tls: c, renew: now.Add(life * 2 / 3)}
	return c, nil
}

func (a *Authority) issueServer(names []string, ips []netip.Addr) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "muster server"},
		DNSNames:    names,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, ip := range ips {
		t.IPAddresses = append(t.IPAddresses, net.IP(ip.AsSlice()))
	}
	der, err := a.sign(t, key.Public(), ServerTTL)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// ServerTLS is the server side of the user API: TLS 1.3, a certificate for
// these names and addresses that is replaced in time, no client certificates.
func (a *Authority) ServerTLS(names []string, ips []netip.Addr) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		Time:       a.clock.Now,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := a.ServerCertificate(names, ips)
			return &c, err
		},
	}
}

// NodeTLS is the server side of the agent endpoint: as ServerTLS, and a client
// certificate is verified if the agent has one. An agent that joins has none
// yet: every other handler must ask NodeFromTLS who is speaking. Sessions are
// not resumed, so that every connection presents its certificate anew.
func (a *Authority) NodeTLS(names []string, ips []netip.Addr) *tls.Config {
	c := a.ServerTLS(names, ips)
	c.ClientAuth = tls.VerifyClientCertIfGiven
	c.ClientCAs = a.Pool()
	c.SessionTicketsDisabled = true
	// Not the hybrid ones, which double what a key exchange costs: thousands of
	// nodes connect at once, over their own network. docs/operators/security.md weighs it.
	c.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
	return c
}

// Pool holds the authority alone: for clients of this server, which trust
// nobody else.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}
