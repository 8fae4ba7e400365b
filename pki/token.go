package pki

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"

	"github.com/muster-hpc/muster"
)

// Prefixes of tokens, so that a scanner of leaked secrets knows them.
const (
	UserPrefix = "mst_" // speaks for a user
	JoinPrefix = "mjt_" // lets one agent join once
)

// tokenLength is that of 32 random bytes in unpadded URL-safe base64.
const tokenLength = 43

// NewToken makes a user token. Show the secret once, keep only the hash.
func NewToken() (secret string, hash [32]byte) { return newToken(UserPrefix) }

// NewJoinToken makes the one-time token of a machine's boot.
func NewJoinToken() (secret string, hash [32]byte) { return newToken(JoinPrefix) }

func newToken(prefix string) (string, [32]byte) {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: crypto/rand aborts the program instead
	secret := prefix + base64.RawURLEncoding.EncodeToString(b)
	return secret, HashToken(secret)
}

// HashToken is what is kept of a token. The secret has 256 random bits, so a
// plain SHA-256 cannot be reversed.
func HashToken(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// ParseToken checks the form of a token and returns its prefix and hash. It
// spares the store questions about what cannot be a token. EUnauth otherwise;
// the error does not quote it.
func ParseToken(secret string) (prefix string, hash [32]byte, err error) {
	for _, p := range []string{UserPrefix, JoinPrefix} {
		body, ok := strings.CutPrefix(secret, p)
		if !ok || len(body) != tokenLength {
			continue
		}
		b, err := base64.RawURLEncoding.Strict().DecodeString(body)
		if err == nil && len(b) == 32 && base64.RawURLEncoding.EncodeToString(b) == body {
			return p, HashToken(secret), nil
		}
	}
	return "", [32]byte{}, muster.Errorf(muster.EUnauth, "that is not a token").Because(muster.ReasonBadToken).
		WithHint("tokens look like %s... and have %d characters: was it copied whole?", UserPrefix, len(UserPrefix)+tokenLength)
}

// EqualHash compares hashes in a time that does not depend on them.
func EqualHash(a, b [32]byte) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }
