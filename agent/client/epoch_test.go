package client

import (
	"slices"
	"strconv"
	"testing"

	"github.com/muster-hpc/muster"
)

// Only the highest epoch is obeyed, and whoever keeps it is told of it before.
func TestEpochsOnlyRise(t *testing.T) {
	t.Parallel()
	var kept []int64
	e := epoch{highest: 2, told: func(n int64) { kept = append(kept, n) }}
	for _, c := range []struct {
		told string
		ok   bool
	}{{"2", true}, {"1", false}, {"", false}, {"3", true}, {"2", false}, {"3", true}, {"9", true}, {"8", false}, {"-9", false}, {"9x", false}} {
		err := e.obey(c.told)
		if (err == nil) != c.ok || err != nil && muster.CodeOf(err) != muster.EUnavailable {
			t.Errorf("%q: %v", c.told, err)
		}
	}
	if !slices.Equal(kept, []int64{3, 9}) {
		t.Errorf("kept %v", kept)
	}
}

// Whatever an answer says, it is never believed to be of an epoch below the first, and
// what was written is read again.
func FuzzParseEpoch(f *testing.F) {
	for _, s := range []string{"", "1", "2", "0", "-1", "9223372036854775807", "9223372036854775808", " 2", "2\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := parseEpoch(s)
		if n < 1 || parseEpoch(strconv.FormatInt(n, 10)) != n {
			t.Fatalf("%q is %d", s, n)
		}
	})
}
