package pki

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// InsideKey is the second host key of a node: the one by which the other nodes of its cluster
// know it. sshd presents one certificate for each key and one key of each type, so that it is an
// ECDSA key. It is derived from the node's host key: it is the same whenever it is made again, and
// nothing more needs to be kept.
func InsideKey(hostKey []byte) (privatePEM string, pub ssh.PublicKey, err error) {
	raw, err := ssh.ParseRawPrivateKey(hostKey)
	if err != nil {
		return "", nil, err
	}
	host, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		return "", nil, errors.New("the host key is not an Ed25519 key")
	}
	key, err := derived(host.Seed())
	if err != nil {
		return "", nil, keyDefect(err)
	}
	der, err := x509.MarshalECPrivateKey(key) // ssh.MarshalPrivateKey writes another text each time
	if err != nil {
		return "", nil, keyDefect(err)
	}
	if pub, err = ssh.NewPublicKey(key.Public()); err != nil {
		return "", nil, keyDefect(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})), pub, nil
}

// derived makes a P-256 key of a secret. Of 2^32 values one is no key, and the next is taken.
func derived(secret []byte) (*ecdsa.PrivateKey, error) {
	var key *ecdsa.PrivateKey
	var err error
	for i := range 8 {
		var scalar []byte
		if scalar, err = hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("inside host key %d", i), 32); err != nil {
			return nil, err
		}
		if key, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err == nil {
			return key, nil
		}
	}
	return nil, err
}
