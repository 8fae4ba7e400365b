package power

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
)

// A thousand controllers are spoken to beside each other: those that are slow, or do not
// answer at all, keep no other.
func TestThousandControllersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		r.takes = 5 * time.Second
		c := NewControl(Config{Drivers: r.drivers()})
		began := time.Now()
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				if _, err := c.State(t.Context(), target(fmt.Sprint("m", i), fmt.Sprint("bmc", i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("they took %v", took)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Programs of the site are processes of this server: only so many run at once.
func TestProgramsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack()
		r.takes = time.Second
		drivers := Drivers{muster.PowerScript: {New: func(t Target, _ Deps) (Driver, error) { return &fakeDriver{r, t}, nil }}}
		c := NewControl(Config{Drivers: drivers, Programs: 10})
		began := time.Now()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				to := Target{Machine: muster.MachineID(fmt.Sprint("m", i)), Address: muster.PowerAddress{Kind: muster.PowerScript, Address: "/x"}}
				if _, err := c.State(t.Context(), to); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("they took %v", took)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
