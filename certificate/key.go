package certificate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"

	"github.com/muster-hpc/muster"
)

// PublicKey is the public half of a signing key.
type PublicKey struct{ raw ed25519.PublicKey }

// NewPublicKey takes a key of this program's own making.
func NewPublicKey(raw ed25519.PublicKey) (PublicKey, error) {
	if len(raw) != ed25519.PublicKeySize {
		return PublicKey{}, notAKey("it has %d bytes, and an Ed25519 key has %d", len(raw), ed25519.PublicKeySize)
	}
	return PublicKey{bytes.Clone(raw)}, nil
}

// der is the SubjectPublicKeyInfo. It is empty for the zero key.
func (k PublicKey) der() []byte {
	der, err := x509.MarshalPKIXPublicKey(k.raw)
	if err != nil {
		return nil
	}
	return der
}

// ID is the key's fingerprint: "sha256:" and the SHA-256 of its
// SubjectPublicKeyInfo.
func (k PublicKey) ID() string {
	sum := sha256.Sum256(k.der())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PEM is the key as other programs read it.
func (k PublicKey) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.der()}))
}

// Base64 is the key on one short line: its 32 bytes.
func (k PublicKey) Base64() string { return base64.StdEncoding.EncodeToString(k.raw) }

// PEM is a key of a list as other programs read it. EInvalid if it is none.
func PEM(k muster.SigningKey) (string, error) {
	public, err := parseBase64(k.Key)
	if err != nil {
		return "", err
	}
	return public.PEM(), nil
}

// parseBase64 reads what Base64 writes.
func parseBase64(text string) (PublicKey, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return PublicKey{}, notAKey("it is not the base64 of a key")
	}
	return NewPublicKey(raw)
}

// parseDER reads a SubjectPublicKeyInfo.
func parseDER(der []byte) (PublicKey, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return PublicKey{}, notAKey("its PUBLIC KEY cannot be read")
	}
	raw, ok := key.(ed25519.PublicKey)
	if !ok {
		return PublicKey{}, notAKey("its key is not of type Ed25519")
	}
	return NewPublicKey(raw)
}

func notAKey(format string, args ...any) *muster.Error {
	return muster.Errorf(muster.EInvalid, "this is not a public key: "+format, args...).
		WithHint("give the server's public key: a PEM block PUBLIC KEY, its 32 bytes in base64, or the server's list of keys in JSON")
}
