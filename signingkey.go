package muster

import "time"

// SigningKey is the public half of a key that signs certificates, with the time
// in which it did. A key that came without times is good for all of them.
type SigningKey struct {
	ID  string `json:"id"`  // "sha256:" and the fingerprint
	Key string `json:"key"` // its 32 bytes in base64
	// From and Until bound when it signed. Until is zero for the present key.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Compromised is when it was found that others may have it. Nothing that it
	// signed is believed then, whatever time it claims.
	Compromised time.Time `json:"compromised,omitzero"`
}
