package nodeconf_test

import (
	"testing"

	"github.com/muster-hpc/muster/nodes/nodeconf"
)

// What one of a thousand nodes costs, once what they share is made.
func BenchmarkNodeOfThousand(b *testing.B) {
	in := input(1000, false)
	s, err := nodeconf.Share(in)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Node(in.Nodes[500], "key"); err != nil {
			b.Fatal(err)
		}
	}
}

// What a thousand nodes share.
func BenchmarkShareOfThousand(b *testing.B) {
	in := input(1000, false)
	for b.Loop() {
		if _, err := nodeconf.Share(in); err != nil {
			b.Fatal(err)
		}
	}
}
