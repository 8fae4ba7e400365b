package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// NodeIdentity is who a node agent is: one attempt of one node on one machine.
type NodeIdentity struct {
	Machine muster.MachineID
	Cluster muster.ClusterID
	Node    string
	Attempt int64
}

// maxCSR bounds what an agent may send to be signed. Real requests have about
// 400 bytes.
const maxCSR = 8 << 10

// URI is the form of the identity inside a certificate.
func (id NodeIdentity) URI() string {
	return "muster://machine/" + string(id.Machine) + "/cluster/" + string(id.Cluster) +
		"/node/" + id.Node + "/attempt/" + strconv.FormatInt(id.Attempt, 10)
}

// ParseIdentity reads the URI of an identity. It takes exactly what URI
// writes: no other case, escapes, ports or leading zeros. EUnauth otherwise.
func ParseIdentity(uri string) (NodeIdentity, error) {
	bad := muster.Errorf(muster.EUnauth, "the certificate names no node of this site").Because(muster.ReasonBadCertificate).
		WithHint("boot the machine again to get a new one")
	rest, ok := strings.CutPrefix(uri, "muster://")
	p := strings.Split(rest, "/")
	if !ok || len(p) != 8 || p[0] != "machine" || p[2] != "cluster" || p[4] != "node" || p[6] != "attempt" {
		return NodeIdentity{}, bad
	}
	attempt, err := strconv.ParseInt(p[7], 10, 64)
	if err != nil {
		return NodeIdentity{}, bad
	}
	id := NodeIdentity{Machine: muster.MachineID(p[1]), Cluster: muster.ClusterID(p[3]), Node: p[5], Attempt: attempt}
	if !id.valid() || id.URI() != uri {
		return NodeIdentity{}, bad
	}
	return id, nil
}

func (id NodeIdentity) valid() bool {
	return plain(string(id.Machine)) && plain(string(id.Cluster)) && plain(id.Node) && id.Attempt > 0
}

// plain reports whether s is up to 128 letters, digits, dots, dashes and
// underlines, beginning with a letter or digit.
func plain(s string) bool {
	for i, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 128
}

// SignNode makes a certificate for the key in a request. Nothing else in the
// request counts: who the agent is was decided by its token. A ttl of zero or
// above NodeTTL is NodeTTL; agents renew in time.
//
// EInvalid for a request that is not well formed, not signed by its own key,
// or of a key type other than P-256 and Ed25519.
func (a *Authority) SignNode(csrPEM string, id NodeIdentity, ttl time.Duration) (certPEM string, expires time.Time, err error) {
	if !id.valid() {
		return "", time.Time{}, muster.Errorf(muster.EInternal, "no certificate for the identity %q", id.URI()).
			WithHint("this is a bug in Muster: please report it with the server's log")
	}
	public, err := parseCSR(csrPEM)
	if err != nil {
		return "", time.Time{}, err
	}
	if ttl <= 0 || ttl > NodeTTL {
		ttl = NodeTTL
	}
	uri, err := url.Parse(id.URI())
	if err != nil {
		return "", time.Time{}, muster.Errorf(muster.EInternal, "no certificate for the identity %q", id.URI()).Wrap(err)
	}
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "muster node"},
		URIs:        []*url.URL{uri},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := a.sign(t, public, ttl)
	if err != nil {
		return "", time.Time{}, muster.Errorf(muster.EInternal, "no certificate could be made for %s", id.URI()).Wrap(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), t.NotAfter.UTC().Truncate(time.Second), nil
}

// parseCSR returns the public key of a request.
func parseCSR(text string) (any, error) {
	bad := muster.Errorf(muster.EInvalid, "the certificate request cannot be read").Because(muster.ReasonBadValue).
		WithHint("send one PEM block of type CERTIFICATE REQUEST with a P-256 or Ed25519 key")
	if len(text) > maxCSR {
		return nil, bad
	}
	der, rest, err := oneBlock([]byte(text), "CERTIFICATE REQUEST")
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, bad.Wrap(err)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, bad.Wrap(err)
	}
	switch k := csr.PublicKey.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return nil, bad
		}
	default:
		return nil, bad
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, bad.Wrap(err)
	}
	return csr.PublicKey, nil
}

// NodeFromTLS reports which node speaks over a connection of a NodeTLS server.
// EUnauth if it presented no certificate, or one that is not a node's.
func NodeFromTLS(s *tls.ConnectionState) (NodeIdentity, error) {
	none := muster.Errorf(muster.EUnauth, "the connection presents no node certificate").Because(muster.ReasonBadCertificate).
		WithHint("join first, and use the certificate that the answer carries")
	if s == nil || s.Version < tls.VersionTLS13 || len(s.VerifiedChains) == 0 || len(s.VerifiedChains[0]) == 0 {
		return NodeIdentity{}, none
	}
	leaf := s.VerifiedChains[0][0]
	if !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) || len(leaf.URIs) != 1 ||
		len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) > 0 {
		return NodeIdentity{}, none
	}
	return ParseIdentity(leaf.URIs[0].String())
}
