package wire

import (
	"encoding/binary"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/muster-hpc/muster"
)

// Sizes of what BootTag takes and makes, in bytes.
const (
	BootSecretSize = chacha20poly1305.KeySize
	BootTagSize    = chacha20poly1305.Overhead
)

// BootTag makes the tags of a file's pieces under a secret that one machine has for one
// boot. Who does not know the secret can change no piece unseen, as with digests; who knows
// it could, so that it is never used for another machine or again. A tag is the
// authenticator of RFC 8439 (2.8) over the piece as additional data without a plain text,
// with the piece's number as nonce: multiplications, where a digest is rotations, which a
// processor that is translated does 15 to 26 times as slowly.
func BootTag(secret []byte) (func(number int, piece []byte) []byte, error) {
	aead, err := chacha20poly1305.New(secret)
	if err != nil {
		return nil, muster.Errorf(muster.EInvalid, "the secret of a file's tags is none").Wrap(err)
	}
	return func(number int, piece []byte) []byte {
		var nonce [chacha20poly1305.NonceSize]byte
		binary.BigEndian.PutUint64(nonce[4:], uint64(number))
		return aead.Seal(nil, nonce[:], nil, piece)
	}, nil
}
