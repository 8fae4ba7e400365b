package muster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"regexp"
	"strings"
)

// fingerprint is the SHA-256 of a certificate as programs print it: openssl x509
// -fingerprint, sha256sum, browsers, and the pages of controllers.
var fingerprint = regexp.MustCompile(`(?i)^(?:sha-?256)?\s*(?:fingerprint|digest)?\s*[:=]?\s*((?:[0-9a-f]{2}[: -]?){31}[0-9a-f]{2})(?:\s+\*?\S*)?$`)

// CanonicalSHA256 writes the digest of a certificate as Muster keeps it: 64 hexadecimal
// digits, small letters. It reads what programs print, and takes the digest of a
// certificate in PEM, the first where there are several. What is none of these is returned
// without blanks around it.
func CanonicalSHA256(s string) string {
	s = strings.TrimSpace(s)
	if strings.Contains(s, "-----BEGIN CERTIFICATE-----") {
		for rest := []byte(s); ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				return s
			}
			if block.Type == "CERTIFICATE" {
				sum := sha256.Sum256(block.Bytes)
				return hex.EncodeToString(sum[:])
			}
		}
	}
	m := fingerprint.FindStringSubmatch(s)
	if m == nil {
		return s
	}
	return strings.ToLower(strings.NewReplacer(":", "", " ", "", "-", "").Replace(m[1]))
}
