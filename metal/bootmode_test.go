package metal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/wire"
)

// Of a machine that was switched on nothing is heard: its next boot is in the other mode.
func TestSilentMachineIsTriedByUEFI(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		machines := registered(1)
		s := newSite(t, machines, quick())
		defer s.stop()
		if got := s.boots.BootMode(machines[0]); got != "" {
			t.Errorf("at first: %q", got)
		}
		if err := s.boots.Start(t.Context(), machines[0].ID, order(wire.BootDiscover, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(quick().Patience + 5*time.Second)
		synctest.Wait()
		if got := s.boots.BootMode(machines[0]); s.state(machines[0].ID).Step != metal.StepFailed || got != muster.BootModeUEFI {
			t.Errorf("then: %q, %+v", got, s.state(machines[0].ID))
		}
	})
}
