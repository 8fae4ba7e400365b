package place

import (
	"cmp"
	"strings"

	"github.com/muster-hpc/muster"
)

// seed and mix are FNV-1a with a final scramble. The hash needs no secrecy: it
// has to be even, and the same for ever, since plans are compared across runs.
func seed(id muster.ClusterID) uint64 { return fnv(14695981039346656037, string(id)) }

func fnv(h uint64, s string) uint64 {
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func hash(s uint64, name string) uint64 {
	h := fnv(s^0x9e3779b97f4a7c15, name)
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// compareHash breaks a tie between two names; names alike compare equal.
func compareHash(s uint64, a, b string) int {
	if c := cmp.Compare(hash(s, a), hash(s, b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}
