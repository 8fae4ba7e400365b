package rmcp

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Suite is a cipher suite (22.15.2): how both sides prove that they know the
// password, how packets are signed, and that they are encrypted.
type Suite struct {
	ID byte
	// The numbers of the algorithms on the wire.
	Authentication, Integrity, Confidentiality byte

	hash func() hash.Hash
	code int // bytes of a packet's code and of RAKP 4
}

// Suites are those spoken here, the better one first: HMAC-SHA256 and
// HMAC-SHA1, both with AES-128. Those without encryption or authentication are
// left out on purpose.
func Suites() []Suite {
	return []Suite{
		{ID: 17, Authentication: 3, Integrity: 4, Confidentiality: 1, hash: sha256.New, code: 16},
		{ID: 3, Authentication: 1, Integrity: 1, Confidentiality: 1, hash: sha1.New, code: 12},
	}
}

// SuiteOf finds the suite with these algorithms.
func SuiteOf(authentication, integrity, confidentiality byte) (Suite, bool) {
	for _, s := range Suites() {
		if s.Authentication == authentication && s.Integrity == integrity && s.Confidentiality == confidentiality {
			return s, true
		}
	}
	return Suite{}, false
}

func (s Suite) mac(key []byte, parts ...[]byte) []byte {
	m := hmac.New(s.hash, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// Exchange is what both sides say in the clear while they open a session.
type Exchange struct {
	Suite Suite
	// ConsoleID and SystemID are the two numbers of the session, each chosen
	// by the side that reads it on what it receives.
	ConsoleID, SystemID         uint32
	ConsoleRandom, SystemRandom [16]byte
	GUID                        [16]byte // of the managed system
	Role                        byte     // privilege asked for; bit 4: the name alone finds the account
	User                        string
}

func (x Exchange) who() []byte {
	return append([]byte{x.Role, byte(len(x.User))}, x.User...)
}

// SystemCode is the proof in RAKP 2 that the controller knows the password
// (13.31). Whoever asks gets it: a weak password can be guessed from it, which
// is a flaw of IPMI, and why its network must be closed.
func (x Exchange) SystemCode(password []byte) []byte {
	return x.Suite.mac(password, le32(x.ConsoleID), le32(x.SystemID),
		x.ConsoleRandom[:], x.SystemRandom[:], x.GUID[:], x.who())
}

// ConsoleCode is the console's proof in RAKP 3.
func (x Exchange) ConsoleCode(password []byte) []byte {
	return x.Suite.mac(password, x.SystemRandom[:], le32(x.ConsoleID), x.who())
}

// Keys derives the session's keys (13.31, 13.32) from the controller's key K_G, or from the
// password where it has none.
func (x Exchange) Keys(key, password []byte) Keys {
	if len(key) == 0 {
		key = password
	}
	sik := x.Suite.mac(key, x.ConsoleRandom[:], x.SystemRandom[:], x.who())
	return Keys{
		suite:   x.Suite,
		sign:    x.Suite.mac(sik, constant(1)),
		encrypt: x.Suite.mac(sik, constant(2))[:16],
		check:   x.Suite.mac(sik, x.ConsoleRandom[:], le32(x.SystemID), x.GUID[:])[:x.Suite.code],
	}
}

// constant is the text from which a key is derived: 20 equal bytes, for each
// hash.
func constant(b byte) []byte {
	c := make([]byte, 20)
	for i := range c {
		c[i] = b
	}
	return c
}

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
