package measure

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func TestUse(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var said []wire.Usage
	say := func(second int, cores float64) {
		said = append(said, wire.Usage{At: from.Add(time.Duration(second) * time.Second), CPUUser: cores})
	}
	u := use{of: func(muster.MachineID) []wire.Usage { return said }}
	s := &subject{m: muster.Measurement{Began: from}, nodes: []muster.Node{{Name: "n01", Machine: "m1"}}}
	say(-5, 9) // before it began
	say(1, 1)
	say(2, 3)
	u.gather(s)
	say(7, 4) // nothing was said in the second step
	u.gather(s)
	u.gather(s)
	got := u.series("n01", "m1", from, from.Add(10*time.Second))
	if len(got) != 1 || got[0].Step != 3 || !slices.Equal(got[0].CPU, []float64{2, 2, 4, 4}) {
		t.Errorf("%+v", got)
	}
	if long := u.series("n01", "m1", from, from.Add(5*time.Hour)); len(long[0].CPU) > usePoints {
		t.Errorf("%d points", len(long[0].CPU))
	}
	if none := u.series("n01", "m2", from, from.Add(time.Second)); none != nil {
		t.Errorf("%+v", none)
	}
}
