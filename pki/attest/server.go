package attest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"

	"github.com/google/go-tpm/tpm2"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Enrol checks the endorsement key that a machine shows and returns what is to be
// kept of it: the public area, byte by byte. EInvalid: it is no such key.
func Enrol(endorsement []byte) ([]byte, error) {
	p, err := endorsementKey(endorsement)
	if err != nil {
		return nil, err
	}
	if _, err := tpm2.ImportEncapsulationKey(p); err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the TPM's endorsement key is of a kind that is not known").Wrap(err)
	}
	return append([]byte(nil), endorsement...), nil
}

// Fingerprint distinguishes endorsement keys for people: 16 hexadecimal digits of
// the public area's SHA-256.
func Fingerprint(endorsement []byte) string {
	sum := sha256.Sum256(endorsement)
	return hex.EncodeToString(sum[:8])
}

// Same reports whether a machine shows the key that was enrolled.
func Same(enrolled, shown []byte) bool {
	return len(enrolled) > 0 && subtle.ConstantTimeCompare(enrolled, shown) == 1
}

// Challenge is a challenge as the server remembers it. It holds a secret.
type Challenge struct {
	Sent   wire.BootChallenge
	secret []byte
	boot   string
	used   bool
}

// New makes a challenge for the TPM with the endorsement key that was enrolled.
// shown is what the machine says of its TPM now. EForbidden: it shows another.
func New(enrolled []byte, shown wire.BootTPM, boot string) (*Challenge, error) {
	if !Same(enrolled, shown.Endorsement) {
		return nil, muster.Errorf(muster.EForbidden, "the machine shows another TPM than the one that was enrolled").Because(muster.ReasonOtherMachine).
			WithHint("enrol it again if its board was exchanged; otherwise another machine speaks in its name")
	}
	p, err := endorsementKey(shown.Endorsement)
	if err != nil {
		return nil, err
	}
	to, err := tpm2.ImportEncapsulationKey(p)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the TPM's endorsement key is of a kind that is not known").Wrap(err)
	}
	name, err := attestationName(shown.Attestation)
	if err != nil {
		return nil, err
	}
	c := &Challenge{secret: make([]byte, 32), boot: boot}
	if _, err := rand.Read(c.secret); err != nil {
		return nil, err
	}
	if c.Sent.Credential, c.Sent.Secret, err = tpm2.CreateCredential(rand.Reader, to, name, c.secret); err != nil {
		return nil, muster.Errorf(muster.EInternal, "no challenge could be made for the TPM").Wrap(err)
	}
	return c, nil
}

// Verify reports whether the answer is that of the TPM, for the program with this
// key. A challenge is worthless after the first answer, right or wrong.
func (c *Challenge) Verify(given, key []byte) error {
	if c.used {
		return muster.Errorf(muster.EConflict, "the challenge was answered before").Because(muster.ReasonGivenAlready).WithHint("ask again for another one")
	}
	c.used = true
	if !hmac.Equal(given, answer(c.secret, c.boot, key)) {
		return muster.Errorf(muster.EForbidden, "the answer to the TPM's challenge is wrong").Because(muster.ReasonUntrustedMachine).
			WithHint("another machine speaks in this one's name, or the answer is of an earlier challenge")
	}
	return nil
}

// answer binds what a challenge held to a boot and to the program that asks.
func answer(secret []byte, boot string, key []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("muster tpm answer 1\x00" + boot + "\x00"))
	m.Write(key)
	return m.Sum(nil)
}
