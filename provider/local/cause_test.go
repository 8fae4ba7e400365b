package local

import (
	"math/rand/v2"
	"testing"

	"github.com/muster-hpc/muster"
)

// TestCause stops nobody who does not stand out.
func TestCause(t *testing.T) {
	t.Parallel()
	const total = 16 << 30
	heavy := cost{machine: "local-01", forwarding: 10_000_000}
	light := cost{machine: "local-02", networks: 3, neighbours: 500}
	for _, c := range []struct {
		name  string
		costs []cost
		want  muster.MachineID
	}{
		{"nobody runs", nil, ""},
		{"all alike", []cost{light, light, light}, ""},
		{"one", []cost{light, heavy, light}, "local-01"},
		{"two alike", []cost{heavy, {machine: "local-03", forwarding: 9_000_000}}, ""},
		{"one alone, too little", []cost{{machine: "local-01", tracked: 100_000}}, ""},
	} {
		got := cause(c.costs, total)
		if c.want == "" && got != nil || c.want != "" && (got == nil || got.machine != c.want) {
			t.Errorf("%s: the cause is %v, want %q", c.name, got, c.want)
		}
	}
	// Whoever is named has the most, and many times what any other has.
	for range 2000 {
		costs := make([]cost, rand.IntN(6))
		for i := range costs {
			costs[i] = cost{machine: muster.MachineID(rune('a' + i)), rings: rand.Int64N(total), forwarding: rand.IntN(1 << 24)}
		}
		got := cause(costs, total)
		for i := range costs {
			if got != nil && costs[i].machine != got.machine && costs[i].bytes()*4 > got.bytes() {
				t.Fatalf("%v is stopped beside %v", got, &costs[i])
			}
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p     pressure
		short bool
	}{
		{pressure{total: 16 << 30, free: 4 << 30, stalled: 80, measured: true}, false}, // programs in their own limits stall, too
		{pressure{total: 16 << 30, free: 900 << 20, stalled: 80, measured: true}, true},
		{pressure{total: 16 << 30, free: 900 << 20, measured: true}, false},
		{pressure{total: 16 << 30, free: 200 << 20, measured: true}, true},
		{pressure{total: 16 << 30, free: 500 << 20}, true},
	} {
		if got := c.p.short(1 << 30); (got != "") != c.short {
			t.Errorf("%+v is short: %q", c.p, got)
		}
	}
}
