package netbench

import (
	"math"
	"slices"
	"testing"
)

// Rates are powers of two, of which the first is far below what was reached and the
// last above it, whatever that was.
func TestSteps(t *testing.T) {
	t.Parallel()
	const mega = 1e6
	if got, want := steps(125e6), []float64{16 * mega, 32 * mega, 64 * mega, 128 * mega, 256 * mega, 512 * mega, 1024 * mega, 2048 * mega}; !slices.Equal(got, want) {
		t.Errorf("of 1 Gbit/s: %g", got)
	}
	for _, reached := range []float64{1, 1e3, 1e5, 3.3e7, 1e9, 5e10, 1e14} {
		got := steps(reached)
		if len(got) == 0 || len(got) > mostSteps || got[0] < mega || got[0] > max(mega, 8*reached/32) || got[len(got)-1] < min(2*8*reached, 1e15) && len(got) < mostSteps && got[len(got)-1] > mega {
			t.Errorf("of %g: %g", reached, got)
		}
		for i, v := range got {
			if k := math.Log2(v / mega); k != math.Round(k) || i > 0 && v != 2*got[i-1] {
				t.Errorf("of %g: %g", reached, got)
			}
		}
	}
}

// It goes on while all that is asked for is sent and comes.
func TestOver(t *testing.T) {
	t.Parallel()
	sent := func(share, loss float64) udp {
		return udp{seconds: 2, packets: int(share * 2 * 1e9 / 8 / datagram), loss: loss}
	}
	for _, c := range []struct {
		u    udp
		over bool
	}{{sent(1, 0), false}, {sent(0.9, 0.005), false}, {sent(1, 0.01), true}, {sent(0.7, 0), true}, {sent(1, 1), true}} {
		if c.u.over(1e9) != c.over {
			t.Errorf("%+v: %t", c.u, !c.over)
		}
	}
}
