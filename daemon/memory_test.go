package daemon

import "testing"

func TestMemory(t *testing.T) {
	used, _ := memoryInUse()
	if used <= 0 {
		t.Fatalf("%d bytes are in use", used)
	}
	for _, used := range []int64{0, used, plentiful, 10 << 30} {
		rest, busy := memoryFor(used, false), memoryFor(used, true)
		if rest < used+used/20 || rest < plentiful || busy < rest {
			t.Errorf("with %d bytes in use the limit is %d, with much to do %d", used, rest, busy)
		}
	}
}
