package pki

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"golang.org/x/crypto/ssh"
)

// UserTTL is the most that a user's SSH certificate may live.
const UserTTL = 24 * time.Hour

// SSHAuthority signs SSH keys of one cluster: one authority for its users,
// another for its hosts. The zero value signs nothing.
type SSHAuthority struct {
	key    ed25519.PrivateKey
	signer ssh.Signer
	clock  muster.Clock
}

// String says nothing about the key.
func (s SSHAuthority) String() string { return "SSH authority " + s.PublicLine() }

// GoString is String: %#v prints no key either.
func (s SSHAuthority) GoString() string { return s.String() }

// NewSSHAuthority makes an Ed25519 authority.
func NewSSHAuthority() (SSHAuthority, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return SSHAuthority{}, keyDefect(err)
	}
	return fromKey(key)
}

func fromKey(key ed25519.PrivateKey) (SSHAuthority, error) {
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return SSHAuthority{}, keyDefect(err)
	}
	return SSHAuthority{key: key, signer: signer, clock: muster.SystemClock{}}, nil
}

// WithClock returns the authority by another clock than this computer's.
func (s SSHAuthority) WithClock(c muster.Clock) SSHAuthority {
	s.clock = c
	return s
}

// Marshal is the private key as OpenSSH PEM: for the store's secrets only.
func (s SSHAuthority) Marshal() []byte {
	if s.key == nil {
		return nil
	}
	b, err := ssh.MarshalPrivateKey(s.key, "")
	if err != nil {
		return nil // an Ed25519 key always can be written
	}
	return pem.EncodeToMemory(b)
}

// ParseSSHAuthority reads what Marshal wrote. ECorrupt for anything else.
func ParseSSHAuthority(b []byte) (SSHAuthority, error) {
	bad := muster.Errorf(muster.ECorrupt, "the SSH authority of the cluster is damaged").Because(muster.ReasonKeysDamaged).
		WithHint("restore the store from a copy, or delete the cluster and make another")
	if len(b) > maxFile {
		return SSHAuthority{}, bad
	}
	_, rest, err := oneBlock(b, "OPENSSH PRIVATE KEY")
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return SSHAuthority{}, bad
	}
	k, err := ssh.ParseRawPrivateKey(b)
	if err != nil {
		return SSHAuthority{}, bad // without the cause: it might quote the key
	}
	key, ok := k.(*ed25519.PrivateKey)
	if !ok || len(*key) != ed25519.PrivateKeySize {
		return SSHAuthority{}, bad
	}
	return fromKey(*key)
}

// PublicLine is the public key as in authorized_keys, without a newline.
func (s SSHAuthority) PublicLine() string {
	if s.signer == nil {
		return ""
	}
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(s.signer.PublicKey())), "\n")
}

// PublicKey is the public half; nil of the zero value.
func (s SSHAuthority) PublicKey() ssh.PublicKey {
	if s.signer == nil {
		return nil
	}
	return s.signer.PublicKey()
}

// SignHost certifies a host key for these names (and addresses). A ttl of zero
// is for ever: the authority ends with its cluster. A certificate that lives
// for days comes out the same when it is made again within a tenth of its life,
// so that no host needs to be told of a new one for nothing.
func (s SSHAuthority) SignHost(pub ssh.PublicKey, names []string, ttl time.Duration) (*ssh.Certificate, error) {
	c := &ssh.Certificate{CertType: ssh.HostCert, ValidPrincipals: names}
	if len(names) > 0 {
		c.KeyId = names[0]
	}
	return s.sign(c, pub, ttl)
}

// steady is how long a host certificate lives at least that comes out the same
// when it is made again.
const steady = 10 * 24 * time.Hour

// again gives what is chosen by chance in a certificate from what is in it.
func again(c *ssh.Certificate, from time.Time) io.Reader {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%d", Line(c.Key), strings.Join(c.ValidPrincipals, ","), from.Unix())
	seed := h.Sum(nil)
	c.Serial = binary.BigEndian.Uint64(seed)
	h.Write([]byte("nonce"))
	return bytes.NewReader(h.Sum(nil))
}

// SignUser certifies a user's key for these principals, for at most UserTTL.
// keyID appears in the logs of sshd. Extensions are names such as permit-pty,
// which is given when none is named.
func (s SSHAuthority) SignUser(pub ssh.PublicKey, keyID string, principals []string, ttl time.Duration, extensions ...string) (*ssh.Certificate, error) {
	if ttl <= 0 || ttl > UserTTL {
		return nil, muster.Errorf(muster.EInvalid, "an SSH certificate cannot live for %s", ttl).WithHint("ask for at most %s", UserTTL)
	}
	if len(extensions) == 0 {
		extensions = []string{"permit-pty"}
	}
	c := &ssh.Certificate{CertType: ssh.UserCert, ValidPrincipals: principals, KeyId: keyID}
	c.Extensions = map[string]string{}
	known := []string{"permit-pty", "permit-port-forwarding", "permit-agent-forwarding", "permit-X11-forwarding", "permit-user-rc"}
	for _, e := range extensions {
		if !slices.Contains(known, e) {
			return nil, muster.Errorf(muster.EInvalid, "there is no SSH extension %q", e).WithHint("use %s", strings.Join(known, ", "))
		}
		c.Extensions[e] = ""
	}
	return s.sign(c, pub, ttl)
}

func (s SSHAuthority) sign(c *ssh.Certificate, pub ssh.PublicKey, ttl time.Duration) (*ssh.Certificate, error) {
	if s.signer == nil {
		return nil, keyDefect(errors.New("the authority is empty"))
	}
	if err := checkPublic(pub); err != nil {
		return nil, err
	}
	// A certificate without principals would be good for everybody.
	if len(c.ValidPrincipals) == 0 {
		return nil, keyDefect(errors.New("a certificate without principals"))
	}
	for _, p := range append([]string{c.KeyId}, c.ValidPrincipals...) {
		if p == "" || len(p) > 256 || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r == 0x7f || r == ',' || r == '*' || r == '?' }) {
			return nil, muster.Errorf(muster.EInvalid, "%q cannot be in an SSH certificate", p).WithHint("use plain names")
		}
	}
	serial := make([]byte, 8)
	_, _ = rand.Read(serial) // never fails
	now := s.clock.Now()
	c.Key, c.Serial = pub, binary.BigEndian.Uint64(serial)
	chance := rand.Reader
	if c.CertType == ssh.HostCert && ttl >= steady {
		now = now.Truncate(ttl / 10)
		chance = again(c, now)
	}
	c.ValidAfter = uint64(now.Add(-skew).Unix())
	c.ValidBefore = ssh.CertTimeInfinity
	if ttl > 0 {
		c.ValidBefore = uint64(now.Add(ttl).Unix())
	}
	if err := c.SignCert(chance, s.signer); err != nil {
		return nil, keyDefect(err)
	}
	return c, nil
}

// checkPublic refuses weak keys, and certificates in place of keys.
func checkPublic(pub ssh.PublicKey) error {
	bad := muster.Errorf(muster.EInvalid, "the SSH key cannot be certified").Because(muster.ReasonBadSSHKey).
		WithHint("use an Ed25519, ECDSA or RSA key, the last with at least 2048 bits")
	if pub == nil {
		return bad
	}
	switch pub.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKECDSA256:
		return nil
	case ssh.KeyAlgoRSA:
		if k, ok := pub.(ssh.CryptoPublicKey); ok {
			if r, ok := k.CryptoPublicKey().(*rsa.PublicKey); ok && r.N.BitLen() >= 2048 {
				return nil
			}
		}
	}
	return bad
}

// Line is a key or certificate as in authorized_keys and *-cert.pub files,
// without a newline.
func Line(k ssh.PublicKey) string {
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(k)), "\n")
}

// NewHostKey makes an Ed25519 key pair: the private half as OpenSSH PEM.
func NewHostKey() (privatePEM string, pub ssh.PublicKey, err error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", nil, keyDefect(err)
	}
	b, err := ssh.MarshalPrivateKey(crypto.PrivateKey(key), "")
	if err != nil {
		return "", nil, keyDefect(err)
	}
	pub, err = ssh.NewPublicKey(public)
	if err != nil {
		return "", nil, keyDefect(err)
	}
	return string(pem.EncodeToMemory(b)), pub, nil
}

func keyDefect(err error) error {
	return muster.Errorf(muster.EInternal, "a key could not be made or used").
		WithHint("this is a bug in Muster: please report it with the server's log").Wrap(err)
}
