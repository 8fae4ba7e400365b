package certificate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/certificate/canonical"
)

// Context stands before the canonical form in what is signed, so that no
// signature can be taken for one of something else.
const Context = "muster performance certificate\x00"

// MaxEnvelope bounds the bytes of one envelope.
const MaxEnvelope = 16 << 20

// Signed is a certificate as it stands in its envelope.
type Signed struct {
	Certificate muster.Certificate
	// Canonical is the canonical form of the certificate: every field of it,
	// those that this program does not know among them.
	Canonical []byte
	// Digest is of Canonical.
	Digest muster.Digest
	// Key is the fingerprint of the key that signed.
	Key       string
	signature []byte
}

// Sign puts a certificate into its envelope, in canonical form. Times are cut
// to whole seconds of UTC. It refuses a certificate that does not Check.
func Sign(c muster.Certificate, key ed25519.PrivateKey) ([]byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, muster.Errorf(muster.EInternal, "there is no key to sign with")
	}
	public, err := NewPublicKey(key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	c = plain(c)
	if err := c.Check(); err != nil {
		return nil, err
	}
	body, err := canonical.Marshal(c)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the certificate %s cannot be written: %v", c.ID, err).
			WithHint("this is a bug in the program that made it").Wrap(err)
	}
	return envelope(body, public.ID(), ed25519.Sign(key, message(body)))
}

// plain makes a certificate the same before and after it was written.
func plain(c muster.Certificate) muster.Certificate {
	for _, t := range []*time.Time{&c.Began, &c.Ended, &c.Made, &c.Expires} {
		*t = t.UTC().Truncate(time.Second)
	}
	c.Use = slices.Clone(c.Use)
	for i := range c.Use {
		c.Use[i].Start = c.Use[i].Start.UTC().Truncate(time.Second)
	}
	c.Conditions.NUMA = slices.Clone(c.Conditions.NUMA)
	for i := range c.Conditions.NUMA {
		if n := &c.Conditions.NUMA[i]; n.CPUs == nil {
			n.CPUs = []int{} // not null
		}
	}
	return c
}

// message is what is signed.
func message(body []byte) []byte { return append([]byte(Context), body...) }

// DigestOf is the digest by which a manifest names a certificate with this
// canonical form.
func DigestOf(body []byte) muster.Digest {
	sum := sha256.Sum256(body)
	return muster.Digest("sha256:" + hex.EncodeToString(sum[:]))
}

// parts are the members of an envelope.
type parts struct {
	Certificate json.RawMessage `json:"certificate"`
	Key         string          `json:"key"`
	Signature   string          `json:"signature"`
}

func envelope(body []byte, key string, signature []byte) ([]byte, error) {
	return canonical.Marshal(parts{body, key, base64.StdEncoding.EncodeToString(signature)})
}

// Envelope is the canonical form of the envelope: what is exported.
func (s Signed) Envelope() ([]byte, error) { return envelope(s.Canonical, s.Key, s.signature) }

// Read takes an envelope apart without asking who signed it: for those that are
// kept where nobody else can write. The error is a *Failure.
func Read(envelope []byte) (Signed, error) {
	s, err := open(envelope)
	if err == nil {
		err = s.decode()
	}
	if err != nil {
		return Signed{}, err
	}
	return s, nil
}

// Entry is how a manifest names the certificate of a node.
func (s Signed) Entry() muster.CertifiedNode {
	c := s.Certificate
	return muster.CertifiedNode{Node: c.Node, Machine: c.Machine, Certificate: c.ID, Digest: s.Digest, Certified: c.Certified, Verdict: c.Verdict}
}

// open takes an envelope apart. The certificate in it is not read yet: nobody
// vouches for it.
func open(data []byte) (Signed, error) {
	if len(data) > MaxEnvelope {
		return Signed{}, fail(Malformed, "give one certificate, or a bundle of them", "this is too long for a certificate: %d bytes", len(data))
	}
	data, err := exact(data)
	if err != nil {
		return Signed{}, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return Signed{}, notACertificate("it is not a JSON object")
	}
	for _, name := range []string{"certificate", "key", "signature"} {
		if _, ok := members[name]; !ok {
			return Signed{}, notACertificate("its member %q is missing", name)
		}
		delete(members, name)
	}
	for name := range members {
		return Signed{}, fail(Malformed, "take the file as it was exported; a newer version of Muster may know more",
			"the envelope has a member %q that is not signed", name)
	}
	var p parts
	if err := json.Unmarshal(data, &p); err != nil || len(p.Certificate) == 0 || p.Certificate[0] != '{' {
		return Signed{}, notACertificate("its members are not an object and two strings")
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(p.Signature)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return Signed{}, fail(Altered, "get the certificate again from where it came", "the signature is not one: it was altered or cut off")
	}
	body := bytes.Clone(p.Certificate)
	return Signed{Canonical: body, Digest: DigestOf(body), Key: p.Key, signature: signature}, nil
}

// exact is the canonical form of an envelope. As it was exported, without any
// space, each byte counts: no other spelling of a value will do, so that one
// altered byte is always told. What a program has laid out anew, for people, is
// taken by its values, because programs write numbers in their own way.
func exact(data []byte) ([]byte, error) {
	form, err := canonical.JSON(data)
	if err != nil {
		return nil, fail(NotJSON, "get the certificate again from where it came, or give another file",
			"this is not JSON, or was cut off or altered: %v", err)
	}
	if _, err := canonical.Exact(data); err != nil && !spaced(data) {
		return nil, fail(Altered, "take the file as it was exported", "this is not spelled as it was signed: %v", err)
	}
	return form, nil
}

// spaced reports whether space stands between the values of a JSON text.
func spaced(text []byte) bool {
	quoted := false
	text = bytes.TrimSpace(text)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			return true
		}
	}
	return false
}

func notACertificate(format string, args ...any) *Failure {
	return fail(Malformed, "a certificate is an object with the members certificate, key and signature", "this is not a certificate: "+format, args...)
}

// named are the fields by which people know a certificate, of any version.
type named struct {
	Version int                  `json:"version"`
	ID      muster.CertificateID `json:"id"`
}

// decode reads the certificate. Whoever calls it knows who vouches for it.
func (s *Signed) decode() error {
	var n named
	if err := json.Unmarshal(s.Canonical, &n); err != nil {
		return notACertificate("it has no version")
	}
	if n.Version > muster.CertificateVersion {
		return fail(TooNew, "use a newer version of Muster",
			"the certificate %s has version %d, and this program knows versions up to %d", n.ID, n.Version, muster.CertificateVersion)
	}
	if err := json.Unmarshal(s.Canonical, &s.Certificate); err != nil {
		return notACertificate("a field has the wrong type")
	}
	if err := s.Certificate.Check(); err != nil {
		f := fail(Malformed, "it is signed, but cannot be right: inform whoever runs the server that signed it", "%v", err)
		var e *muster.Error
		if errors.As(err, &e) {
			f.Err.Message, f.Err.Problems = e.Message, e.Problems
		}
		return f
	}
	return nil
}
