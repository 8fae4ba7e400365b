package muster_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
)

func TestAtOnce(t *testing.T) {
	t.Parallel()
	m := func(set string, cores int, parts ...string) *muster.Facts {
		return &muster.Facts{Set: set, Cores: cores, Parts: parts}
	}
	for name, c := range map[string]struct {
		machines     []*muster.Facts
		count, cores int64
	}{
		"none":            {nil, 0, 0},
		"no parts":        {[]*muster.Facts{m("", 4), m("", 4)}, 2, 8},
		"dense or spread": {[]*muster.Facts{m("dense", 2, "a", "b"), m("spread", 1, "a"), m("spread", 1, "b")}, 2, 2},
		"and others":      {[]*muster.Facts{m("", 4), m("dense", 2, "a", "b"), m("spread", 1, "a"), m("spread", 1, "b")}, 3, 6},
		"one has less":    {[]*muster.Facts{m("dense", 3, "a"), m("spread", 1, "a")}, 1, 3},
		"two hosts":       {[]*muster.Facts{m("dense", 2, "a"), m("spread", 1, "a"), m("dense", 2, "b"), m("spread", 1, "b")}, 2, 4},
		"three in a row":  {[]*muster.Facts{m("x", 3, "p"), m("y", 3, "p", "q"), m("z", 3, "q")}, 2, 6},
	} {
		if n := muster.AtOnce(c.machines, func(*muster.Facts) int64 { return 1 }); n != c.count {
			t.Errorf("%s: %d machines, want %d", name, n, c.count)
		}
		if n := muster.AtOnce(c.machines, func(f *muster.Facts) int64 { return int64(f.Cores) }); n != c.cores {
			t.Errorf("%s: %d cores, want %d", name, n, c.cores)
		}
	}
}

// It is never more than can be, never less than a set has, and the order of machines does not matter.
func TestAtOnceProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []*muster.Facts
		cores := map[string]bool{}
		most := map[string]int64{}
		for _, set := range []string{"a", "b", "c"} {
			// Each set lies on the same cores, one machine after the other.
			for at := 0; at < 12; {
				n := rapid.IntRange(1, 5).Draw(t, "cores")
				if at+n > 12 {
					break
				}
				f := &muster.Facts{Set: set, Cores: n}
				for c := at; c < at+n; c++ {
					f.Parts = append(f.Parts, fmt.Sprint("cpu", c))
					cores[f.Parts[c-at]] = true
				}
				at += n
				most[set] += int64(n)
				list = append(list, f)
			}
		}
		weigh := func(f *muster.Facts) int64 { return int64(f.Cores) }
		got := muster.AtOnce(list, weigh)
		if got > int64(len(cores)) || got < max(most["a"], most["b"], most["c"]) {
			t.Fatalf("%d cores, of %d; the sets have %v", got, len(cores), most)
		}
		other := slices.Clone(list)
		slices.Reverse(other)
		if again := muster.AtOnce(other, weigh); again < max(most["a"], most["b"], most["c"]) || again > int64(len(cores)) {
			t.Fatalf("%d and %d", got, again)
		}
	})
}
