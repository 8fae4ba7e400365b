package certificate

import "crypto/ed25519"

// SignRaw signs bytes that no honest server would: they are not checked.
func SignRaw(body []byte, key ed25519.PrivateKey) ([]byte, error) {
	body, err := exact(body)
	if err != nil {
		return nil, err
	}
	public, err := NewPublicKey(key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	return envelope(body, public.ID(), ed25519.Sign(key, message(body)))
}
