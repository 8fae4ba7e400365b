package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"time"

	"github.com/muster-hpc/muster"
)

// credential is a private key and, once joined, the certificate for it. The
// key never leaves the machine.
type credential struct {
	key  *ecdsa.PrivateKey
	cert *tls.Certificate // nil before the join
}

func newCredential() (credential, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return credential{key: key}, err
}

// request is the signing request for the key. The server decides what the
// certificate says; the name in the request is only for people.
func (c credential) request(m muster.MachineID) (string, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: string(m)},
	}, c.key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// with returns the credential with the certificate of a server's answer.
// The error is EUnavailable when it is not one for this key, or not valid now.
func (c credential) with(certPEM string, now time.Time) (credential, error) {
	bad := muster.Errorf(muster.EUnavailable, "the server's answer holds no certificate for this node's key")
	der, _ := pem.Decode([]byte(certPEM))
	if der == nil || der.Type != "CERTIFICATE" {
		return c, bad
	}
	leaf, err := x509.ParseCertificate(der.Bytes)
	if err != nil {
		return c, bad.Wrap(err)
	}
	pub, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok || !pub.Equal(&c.key.PublicKey) {
		return c, bad
	}
	if !now.Before(leaf.NotAfter) {
		return c, muster.Errorf(muster.EUnavailable, "the certificate of this node ended at %s", leaf.NotAfter.Format(time.RFC3339)).
			WithHint("compare the clocks of node and server")
	}
	c.cert = &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: c.key, Leaf: leaf}
	return c, nil
}

// renewAt is when to ask for the next certificate: at two thirds of its life,
// a random twentieth earlier.
func (c credential) renewAt() time.Time {
	leaf := c.cert.Leaf
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(life*2/3 - time.Duration(float64(life)/20*randFloat()))
}

func (c credential) marshal() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		return nil, err
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if c.cert != nil {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Certificate[0]})...)
	}
	return out, nil
}

// parseCredential reads what marshal wrote. A certificate that does not fit or
// has ended is left out; the key alone can still join.
func parseCredential(b []byte, now time.Time) (credential, error) {
	bad := muster.Errorf(muster.ECorrupt, "the kept credential is damaged")
	block, rest := pem.Decode(b)
	if block == nil {
		return credential{}, bad
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return credential{}, bad.Wrap(err)
	}
	key, ok := k.(*ecdsa.PrivateKey)
	if !ok {
		return credential{}, bad
	}
	c := credential{key: key}
	if len(rest) > 0 {
		if full, err := c.with(string(rest), now); err == nil {
			return full, nil
		}
	}
	return c, nil
}
