package rmcp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
)

// Keys are the keys of one session.
type Keys struct {
	suite                Suite
	sign, encrypt, check []byte
}

// String hides the keys.
func (Keys) String() string { return "keys of a session" }

// GoString hides them from %#v.
func (k Keys) GoString() string { return k.String() }

// Check is the controller's last word in RAKP 4: it has the same keys.
func (k Keys) Check() []byte { return k.check }

// Seal makes a packet of the session: encrypted, numbered and signed.
func (k Keys) Seal(t Type, session, sequence uint32, payload []byte) ([]byte, error) {
	secret, err := k.lock(payload)
	if err != nil {
		return nil, err
	}
	b := appendHeader(nil, byte(t)|flagEncrypted|flagAuthenticated, session, sequence, len(secret))
	b = append(b, secret...)
	pad := (4 - (len(b)-4+2)%4) % 4 // what is signed is a multiple of four bytes
	for range pad {
		b = append(b, 0xff)
	}
	b = append(b, byte(pad), 0x07)
	return append(b, k.suite.mac(k.sign, b[4:])[:k.suite.code]...), nil
}

// Open returns the payload of a packet of this session once its code is right.
// Nothing unsigned or unencrypted passes, whatever its flags say. ECORRUPT
// otherwise. That its number is new is for the caller to see.
func (k Keys) Open(p Packet, session uint32) ([]byte, error) {
	if !p.Plus || !p.Authenticated || !p.Encrypted || p.Session != session {
		return nil, corrupt("a packet that is not of this session")
	}
	if len(p.trail) < 2+k.suite.code {
		return nil, corrupt("a packet of the session without its code")
	}
	cut := len(p.signed) - k.suite.code
	if !hmac.Equal(p.signed[cut:], k.suite.mac(k.sign, p.signed[:cut])[:k.suite.code]) {
		return nil, corrupt("a packet of the session with a wrong code")
	}
	return k.unlock(p.Payload)
}

// lock encrypts with AES-CBC (13.29): a random block first, the payload, pad
// bytes 1, 2, 3... and their number.
func (k Keys) lock(payload []byte) ([]byte, error) {
	block, err := aes.NewCipher(k.encrypt)
	if err != nil {
		return nil, corrupt("no cipher: %v", err)
	}
	pad := (aes.BlockSize - (len(payload)+1)%aes.BlockSize) % aes.BlockSize
	out := make([]byte, aes.BlockSize, aes.BlockSize+len(payload)+pad+1)
	_, _ = rand.Read(out) // never fails: crypto/rand aborts the program instead
	out = append(out, payload...)
	for i := range pad {
		out = append(out, byte(i+1))
	}
	out = append(out, byte(pad))
	cipher.NewCBCEncrypter(block, out[:aes.BlockSize]).CryptBlocks(out[aes.BlockSize:], out[aes.BlockSize:])
	return out, nil
}

func (k Keys) unlock(b []byte) ([]byte, error) {
	if len(b) < 2*aes.BlockSize || len(b)%aes.BlockSize != 0 {
		return nil, corrupt("an encrypted payload of %d bytes", len(b))
	}
	block, err := aes.NewCipher(k.encrypt)
	if err != nil {
		return nil, corrupt("no cipher: %v", err)
	}
	out := make([]byte, len(b)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, b[:aes.BlockSize]).CryptBlocks(out, b[aes.BlockSize:])
	pad := int(out[len(out)-1])
	if pad >= aes.BlockSize {
		return nil, corrupt("an encrypted payload with %d bytes of padding", pad)
	}
	return out[:len(out)-1-pad], nil
}
