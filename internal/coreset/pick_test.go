package coreset_test

import (
	"slices"
	"testing"

	"github.com/muster-hpc/muster/internal/coreset"
	"pgregory.net/rapid"
)

func TestPick(t *testing.T) {
	t.Parallel()
	var two []coreset.CPU // two sockets of four cores with two threads each, numbered as Linux does
	for i := range 16 {
		two = append(two, coreset.CPU{ID: i, Core: i % 4, Socket: i % 8 / 4, Node: i % 8 / 4})
	}
	for _, c := range []struct {
		cores, sockets int
		want           []int
	}{
		{2, 1, []int{0, 1, 8, 9}}, {2, 2, []int{0, 4, 8, 12}}, {0, 0, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		{4, 0, []int{0, 1, 2, 3, 8, 9, 10, 11}}, {5, 0, []int{0, 1, 2, 3, 4, 8, 9, 10, 11, 12}},
		{5, 1, nil}, {9, 0, nil}, {3, 3, nil}, {3, 2, nil},
	} {
		got, err := coreset.Pick(two, c.cores, c.sockets)
		if (err != nil) != (c.want == nil) || !slices.Equal(got, c.want) {
			t.Errorf("%d of %d: %v %v", c.cores, c.sockets, got, err)
		}
	}
}

// What is chosen has as many cores and sockets as asked, whole, and choosing from it again
// changes nothing.
func TestPickProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sockets, cores, threads := rapid.IntRange(1, 4).Draw(t, "sockets"), rapid.IntRange(1, 6).Draw(t, "cores"), rapid.IntRange(1, 2).Draw(t, "threads")
		var all []coreset.CPU
		for id := range sockets * cores * threads {
			c := id % (sockets * cores)
			all = append(all, coreset.CPU{ID: id, Core: c % cores, Socket: c / cores, Node: c / cores})
		}
		from := rapid.IntRange(0, sockets).Draw(t, "from")
		n := rapid.IntRange(1, cores).Draw(t, "n") * max(1, from)
		got, err := coreset.Pick(all, n, from)
		if err != nil {
			t.Fatal(err)
		}
		c, s := coreset.Count(all, got)
		if c != n || len(got) != n*threads || from > 0 && s != from || !slices.Contains(got, 0) {
			t.Fatalf("%d cores of %d sockets: %v", n, from, got)
		}
		var left []coreset.CPU
		for _, cpu := range all {
			if slices.Contains(got, cpu.ID) {
				left = append(left, cpu)
			}
		}
		if again, err := coreset.Pick(left, n, from); err != nil || !slices.Equal(again, got) {
			t.Fatalf("%v, then %v %v", got, again, err)
		}
	})
}
