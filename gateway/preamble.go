package gateway

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
)

// A connection through the straight door that the kernel does not know begins with one line,
//
//	MUSTER-TICKET/1 SECRET
//
// and is answered with one, after the line by which every SSH server greets: "OK", after which the
// node speaks, or "NO " and why not.
const (
	preambleWord = "MUSTER-TICKET/1 "
	longestLine  = 128
)

// secret opens the straight door once.
type secret [32]byte

func newSecret() (s secret) {
	_, _ = rand.Read(s[:]) // does not fail
	return s
}

func (s secret) String() string { return base64.RawURLEncoding.EncodeToString(s[:]) }

// parsePreamble reads the first line of a connection, with its line feed. False: it is none.
func parsePreamble(line []byte) (s secret, ok bool) {
	text, ended := bytes.CutSuffix(line, []byte("\n"))
	text, worded := bytes.CutPrefix(text, []byte(preambleWord))
	if !ended || !worded || len(text) != base64.RawURLEncoding.EncodedLen(len(s)) {
		return s, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(s[:], text)
	if err != nil || n != len(s) {
		return secret{}, false
	}
	return s, true
}
