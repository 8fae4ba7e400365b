package pki

import (
	"crypto/tls"
	"net/netip"
	"time"

	"github.com/muster-hpc/muster"
	"golang.org/x/crypto/ssh"
)

var errTodo = muster.Errorf(muster.EInternal, "not written yet")

// Authority signs the certificates of one server.
type Authority struct{}

// NodeIdentity is who a node agent is.
type NodeIdentity struct {
	Machine muster.MachineID
	Cluster muster.ClusterID
	Node    string
	Attempt int64
}

// SSHAuthority signs SSH keys of one cluster.
type SSHAuthority struct{}

func OpenAuthority(dir string, clock muster.Clock) (*Authority, error) { return nil, errTodo }
func (a *Authority) CertificatePEM() string                            { return "" }
func (a *Authority) ServerCertificate(names []string, ips []netip.Addr) (tls.Certificate, error) {
	return tls.Certificate{}, errTodo
}
func (a *Authority) SignNode(csrPEM string, id NodeIdentity, ttl time.Duration) (certPEM string, expires time.Time, err error) {
	return "", time.Time{}, errTodo
}

// NodeTLS is the server side of the agent endpoint: TLS 1.3, client
// certificate optional (join has none) but verified when given.
func (a *Authority) NodeTLS(names []string, ips []netip.Addr) *tls.Config { return nil }

// ServerTLS is the server side of the user API: TLS 1.3, no client certificate.
func (a *Authority) ServerTLS(names []string, ips []netip.Addr) *tls.Config { return nil }
func NodeFromTLS(s *tls.ConnectionState) (NodeIdentity, error)              { return NodeIdentity{}, errTodo }

// NewToken makes a user token ("mst_..."); NewJoinToken a join token ("mjt_...").
func NewToken() (secret string, hash [32]byte)     { return }
func NewJoinToken() (secret string, hash [32]byte) { return }
func HashToken(secret string) [32]byte             { return [32]byte{} }

func NewSSHAuthority() (SSHAuthority, error)           { return SSHAuthority{}, errTodo }
func (s SSHAuthority) Marshal() []byte                 { return nil }
func ParseSSHAuthority(b []byte) (SSHAuthority, error) { return SSHAuthority{}, errTodo }
func (s SSHAuthority) PublicLine() string              { return "" }
func (s SSHAuthority) SignHost(pub ssh.PublicKey, names []string, ttl time.Duration) (*ssh.Certificate, error) {
	return nil, errTodo
}
func (s SSHAuthority) SignUser(pub ssh.PublicKey, keyID string, principals []string, ttl time.Duration, extensions ...string) (*ssh.Certificate, error) {
	return nil, errTodo
}
func NewHostKey() (privatePEM string, pub ssh.PublicKey, err error) { return "", nil, errTodo }
