package cpulist

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfDistinct(rapid.IntRange(0, 300), rapid.ID).Draw(t, "cpus")
		out, err := Parse(Format(in))
		slices.Sort(in)
		if err != nil || !slices.Equal(in, out) {
			t.Fatalf("%v became %v: %v", in, out, err)
		}
	})
	if got := Format([]int{3, 1, 2, 8}); got != "1-3,8" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "0", "0-3,8", "3-1", "-1", "1,,2", "0-99999999999", "\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cpus, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(Format(cpus))
		if err != nil || !slices.Equal(cpus, again) {
			t.Errorf("%q: %v, then %v %v", text, cpus, again, err)
		}
	})
}
