package muster

import (
	"crypto/rand"
	"strings"
)

// ClusterID names a cluster for ever: "c-" and ten characters. It is never
// reused, and every request after the first names the cluster by it (or by its
// name within a project, while that is unambiguous).
type ClusterID string

// MachineID names a machine within a site, for instance "local-03". It is
// chosen by the provider and stable over restarts.
type MachineID string

// ImageID is the content ID of an image: "sha256:" and 64 hexadecimal digits.
type ImageID string

// idAlphabet has no vowels and none of 0, 1, l, o: IDs never spell words and
// are never misread over a telephone.
const idAlphabet = "23456789bcdfghjkmnpqrstvwxz"

// NewClusterID makes a fresh cluster ID (47 bits of randomness).
func NewClusterID() ClusterID { return ClusterID("c-" + RandomID(10)) }

// RandomID returns n characters of the ID alphabet from the system's secure
// source of randomness.
func RandomID(n int) string {
	var b strings.Builder
	buf := make([]byte, 1)
	limit := byte(256 - 256%len(idAlphabet)) // reject the tail: no bias
	for b.Len() < n {
		_, _ = rand.Read(buf) // never fails: crypto/rand aborts the program instead
		if buf[0] < limit {
			b.WriteByte(idAlphabet[int(buf[0])%len(idAlphabet)])
		}
	}
	return b.String()
}
