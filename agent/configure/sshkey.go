package configure

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
)

// keyPair makes an SSH key: the private half as OpenSSH keeps it in a file,
// the public half as a line of authorized_keys.
func keyPair(comment string) (private, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	const kind = "ssh-ed25519"
	blob := appendField(appendField(nil, []byte(kind)), pub)

	var salt [4]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return "", "", err
	}
	// The number stands twice: a wrong passphrase would show. There is none.
	inner := append(append([]byte{}, salt[:]...), salt[:]...)
	for _, f := range [][]byte{[]byte(kind), pub, priv, []byte(comment)} {
		inner = appendField(inner, f)
	}
	for i := byte(1); len(inner)%8 != 0; i++ {
		inner = append(inner, i)
	}

	out := []byte("openssh-key-v1\x00")
	for _, f := range [][]byte{[]byte("none"), []byte("none"), nil} { // cipher, key derivation, its options
		out = appendField(out, f)
	}
	out = binary.BigEndian.AppendUint32(out, 1)
	out = appendField(appendField(out, blob), inner)

	private = string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: out}))
	public = kind + " " + base64.StdEncoding.EncodeToString(blob) + " " + comment + "\n"
	return private, public, nil
}

func appendField(b, field []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
	return append(b, field...)
}
