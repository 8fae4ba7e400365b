package measure

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

func TestUseOfSeconds(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var u use
	u.take("n01", from, wire.UsageSeconds{User: []float64{1}, System: []float64{1}, Wait: []float64{1}}) // nobody asked
	u.watch([]muster.Node{{Name: "n01"}, {Name: "n02"}})
	if !u.watches("n01") || u.watches("n03") {
		t.Error("the wrong nodes are asked")
	}
	u.take("n01", from.Add(3*time.Second), wire.UsageSeconds{User: []float64{1, 2, 1.5}, System: []float64{0.5, 0, 0.1}, Wait: []float64{0, 0, 0.4}})
	// Nothing was said of the fourth second, and it took half a second to be told.
	u.take("n01", from.Add(5500*time.Millisecond), wire.UsageSeconds{Ago: 0.5, User: []float64{0.25}, System: []float64{0.75}, Wait: []float64{1}})
	got := u.series("n01")
	if len(got) != 1 || got[0].Step != 1 || !got[0].Start.Equal(from) || !slices.Equal(got[0].User, []float64{1, 2, 1.5, 1.5, 0.25}) ||
		!slices.Equal(got[0].System, []float64{0.5, 0, 0.1, 0.1, 0.75}) || !slices.Equal(got[0].Wait, []float64{0, 0, 0.4, 0.4, 1}) ||
		!slices.Equal(got[0].CPU, []float64{1.5, 2, 1.6, 1.6, 1}) {
		t.Errorf("%+v", got)
	}
	if none := u.series("n02"); none != nil {
		t.Errorf("%+v", none)
	}
}

// An agent of before seconds says it at its own pace.
func TestUseOfReports(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var said []wire.Usage
	say := func(second int, cores float64) {
		said = append(said, wire.Usage{At: from.Add(time.Duration(second) * time.Second), CPUUser: cores, CPUWait: 1})
	}
	u := use{of: func(muster.MachineID) []wire.Usage { return said }}
	s := &subject{m: muster.Measurement{Began: from}, nodes: []muster.Node{{Name: "n01", Machine: "m1"}}}
	say(-5, 9) // before it began
	say(1, 1)
	say(2, 3)
	u.gather(s)
	say(4, 4)
	u.gather(s)
	u.gather(s)
	got := u.series("n01")
	if len(got) != 1 || !slices.Equal(got[0].CPU, []float64{1, 3, 3, 4}) || !slices.Equal(got[0].Wait, []float64{1, 1, 1, 1}) {
		t.Errorf("%+v", got)
	}
	u.take("n01", from.Add(9*time.Second), wire.UsageSeconds{User: []float64{2}, System: []float64{0}, Wait: []float64{0}})
	if got := u.series("n01"); !slices.Equal(got[0].CPU, []float64{2}) {
		t.Errorf("%+v", got)
	}
}

// However long it takes, what is kept is short, and the mean stays what it was.
func TestUseProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var u use
		u.watch([]muster.Node{{Name: "n01"}})
		now, n, sum := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0, 0.0
		for range rapid.IntRange(1, 30).Draw(t, "reports") {
			list := rapid.SliceOfN(rapid.Float64Range(0, 64), 1, wire.MaxUsageSeconds).Draw(t, "seconds")
			now = now.Add(time.Duration(len(list)) * time.Second)
			zeros := make([]float64, len(list))
			u.take("n01", now, wire.UsageSeconds{User: list, System: zeros, Wait: zeros})
			for _, v := range list {
				n, sum = n+1, sum+v
			}
		}
		got := u.series("n01")[0]
		if len(got.CPU) > usePoints || len(got.User) != len(got.CPU) || got.Step != math.Trunc(got.Step) || got.Step*float64(len(got.CPU)) < float64(n) {
			t.Fatalf("%d steps of %g s for %d s", len(got.CPU), got.Step, n)
		}
		b, kept := u.nodes["n01"], 0.0
		for _, v := range b.user {
			kept += float64(v)
		}
		if math.Abs(kept-sum) > 1e-3*(1+sum) {
			t.Fatalf("%g of %g are left", kept, sum)
		}
	})
}

// Of many nodes one has the mean, under the names of all.
func TestUseOfMany(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var u use
	var names []string
	for i := range mostUseNodes + 1 {
		name := fmt.Sprintf("n%02d", i+1)
		names = append(names, name)
		u.watch([]muster.Node{{Name: name}})
		u.take(name, now, wire.UsageSeconds{User: []float64{float64(i % 2)}, System: []float64{1}, Wait: []float64{0}})
	}
	got := u.all(names)
	if len(got) != 1 || got[0].Node != "n[01-65]" || len(got[0].CPU) != 1 || math.Abs(got[0].CPU[0]-1.492) > 1e-9 {
		t.Errorf("%+v", got)
	}
	if few := u.all(names[:3]); len(few) != 3 || few[1].Node != "n02" || few[1].CPU[0] != 2 {
		t.Errorf("%+v", few)
	}
}
