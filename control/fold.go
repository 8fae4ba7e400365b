package control

import (
	"github.com/muster-hpc/muster/internal/nodeset"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// fold writes names of nodes as one short text: n[05-08].
func fold(names []string) string { return nodeset.Fold(names) }

// countThose writes them, or how many they are.
func countThose(names []string) string {
	if text := fold(names); len(text) <= 60 {
		return text
	}
	return plaintext.Count(len(names), "node")
}

// verb suits the number of those who do something.
func verb(names []string, one, many string) string {
	if len(names) == 1 {
		return one
	}
	return many
}
