package fake

import (
	"testing"

	"github.com/muster-hpc/muster"
)

// A pretended machine uses what its facts say that it has, and no more.
func TestUseFitsTheMachine(t *testing.T) {
	t.Parallel()
	w := New(Options{Machines: 4, Classes: 2})
	t.Cleanup(w.Close)
	for _, m := range w.machines {
		meter := newMeter(7, m.facts)
		for range 100 {
			u := meter.sample()
			if u.MemoryTotal != m.facts.Memory || u.DiskTotal != m.facts.Disk || u.MemoryUsed > u.MemoryTotal || u.MemoryUsed <= 0 || u.DiskUsed > u.DiskTotal ||
				u.CPUUser+u.CPUSystem > float64(m.facts.Cores) {
				t.Fatalf("%+v of %+v", u, m.facts)
			}
		}
	}
	if u := newMeter(7, muster.Facts{}).sample(); u.MemoryUsed > u.MemoryTotal {
		t.Errorf("%+v", u)
	}
}
