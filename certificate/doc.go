// Package certificate signs and checks performance certificates. It needs
// neither a server nor a file: whoever has the bytes and the public key can
// tell whether they are what the server signed, and still good.
//
// A certificate travels in an envelope:
//
//	{"certificate": {...}, "key": "sha256:...", "signature": "..."}
//
// What is signed are the bytes of Context followed by the canonical form (RFC
// 8785, package canonical) of the member certificate, with Ed25519 (RFC 8032).
// The key is named by the SHA-256 of its SubjectPublicKeyInfo. A manifest names
// the certificates of its nodes by the SHA-256 of their canonical form.
package certificate
