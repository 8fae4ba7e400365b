package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// Lives of certificates.
const (
	AuthorityTTL = 10 * 365 * 24 * time.Hour // the authority's own
	ServerTTL    = 30 * 24 * time.Hour       // a server certificate; replaced after two thirds
	// The most a node certificate may have. Revoking needs no expiry, because
	// every request is checked against the attempt in the store; a long life
	// means that a server which was down for a month is still believed.
	NodeTTL = 90 * 24 * time.Hour
	// skew is how far back a certificate is valid, for machines whose clock is
	// a little behind.
	skew = 5 * time.Minute
)

const authorityFile = "authority.pem"

// Authority signs the certificates of one server. It is safe for concurrent
// use.
type Authority struct {
	key   *ecdsa.PrivateKey
	cert  *x509.Certificate
	pem   string
	clock muster.Clock

	mu      sync.Mutex
	servers map[string]*serverCertificate
}

// String says nothing about the key.
func (a *Authority) String() string { return "authority " + a.Fingerprint()[:16] }

// GoString is String: %#v prints no key either.
func (a *Authority) GoString() string { return a.String() }

// OpenAuthority opens the authority kept in dir, and makes dir (0700) and the
// authority (0600) if there is none. It is the same one after every restart.
//
// Errors: EInvalid if others can read dir or the key, ECorrupt if the file is
// not what was written, EConflict once the authority has expired.
func OpenAuthority(dir string, clock muster.Clock) (*Authority, error) {
	if clock == nil {
		clock = muster.SystemClock{}
	}
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, authorityFile)
	data, err := readPrivate(path)
	if errors.Is(err, os.ErrNotExist) {
		if data, err = makeAuthority(clock.Now()); err != nil {
			return nil, err
		}
		if err = writeNew(path, data); errors.Is(err, os.ErrExist) {
			data, err = readPrivate(path) // another process was quicker
		}
	}
	if err != nil {
		return nil, err
	}
	a, err := parseAuthority(data)
	if err != nil {
		return nil, muster.Errorf(muster.ECorrupt, "the authority in %s is damaged", path).Because(muster.ReasonKeysDamaged).
			WithHint("restore the file from a copy; without one remove it and site.json beside its folder, and every agent and client must join anew").Wrap(err)
	}
	if clock.Now().After(a.cert.NotAfter) {
		return nil, muster.Errorf(muster.EConflict, "the authority expired on %s", a.cert.NotAfter.Format(time.DateOnly)).Because(muster.ReasonBadCertificate).
			WithHint("remove %s and site.json beside its folder to make a new one: every agent and client must join anew", path)
	}
	a.clock = clock
	return a, nil
}

func makeAuthority(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "muster authority " + hex.EncodeToString(serial.Bytes()[:4])},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(AuthorityTTL),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	// Both in one file: it is there as a whole or not at all.
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), nil
}

// parseAuthority takes exactly what makeAuthority wrote.
func parseAuthority(data []byte) (*Authority, error) {
	secret, rest, err := oneBlock(data, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	public, rest, err := oneBlock(rest, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("something follows the certificate")
	}
	k, err := x509.ParsePKCS8PrivateKey(secret)
	if err != nil {
		return nil, errors.New("the key cannot be read") // the cause might quote it
	}
	key, ok := k.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key is not of type P-256")
	}
	if again, err := x509.MarshalPKCS8PrivateKey(key); err != nil || !bytes.Equal(again, secret) {
		return nil, errors.New("the key is not what was written")
	}
	cert, err := x509.ParseCertificate(public)
	if err != nil {
		return nil, err
	}
	if !cert.IsCA || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("key and certificate do not belong together")
	}
	if err := cert.CheckSignatureFrom(cert); err != nil {
		return nil, err
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}))
	return &Authority{key: key, cert: cert, pem: text, servers: map[string]*serverCertificate{}}, nil
}

// CertificatePEM is the authority's public certificate: what agents and
// clients must trust.
func (a *Authority) CertificatePEM() string { return a.pem }

// Fingerprint is the SHA-256 of the certificate in hexadecimal: for people to
// compare.
func (a *Authority) Fingerprint() string {
	sum := sha256.Sum256(a.cert.Raw)
	return hex.EncodeToString(sum[:])
}

// Expires is when the authority ends.
func (a *Authority) Expires() time.Time { return a.cert.NotAfter }

// sign issues a certificate for a public key. It never outlives the authority.
func (a *Authority) sign(t *x509.Certificate, public any, ttl time.Duration) ([]byte, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := a.clock.Now()
	t.SerialNumber = serial
	t.NotBefore, t.NotAfter = now.Add(-skew), now.Add(ttl)
	if t.NotAfter.After(a.cert.NotAfter) {
		t.NotAfter = a.cert.NotAfter
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.BasicConstraintsValid = true
	return x509.CreateCertificate(rand.Reader, t, a.cert, public, a.key)
}

// newSerial is 127 random bits, never zero in its first byte.
func newSerial() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b), nil
}

// oneBlock takes the first PEM block, which must have the type, nothing before
// it and no headers.
func oneBlock(data []byte, kind string) (der, rest []byte, err error) {
	if !bytes.HasPrefix(bytes.TrimLeft(data, "\r\n"), []byte("-----BEGIN "+kind+"-----")) {
		return nil, nil, errors.New("a block of type " + kind + " is missing")
	}
	b, rest := pem.Decode(data)
	if b == nil || b.Type != kind || len(b.Headers) > 0 {
		return nil, nil, errors.New("the block of type " + kind + " cannot be read")
	}
	return b.Bytes, rest, nil
}
