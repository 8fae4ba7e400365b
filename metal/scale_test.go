package metal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal"
	"github.com/muster-hpc/muster/metal/bootqueue"
	"github.com/muster-hpc/muster/wire"
)

// A thousand machines boot at once where their racks allow it: no other limit holds them
// back, whether the site names its racks or not. One rack keeps its own.
func TestThousandMachinesBootAtOnce(t *testing.T) {
	t.Parallel()
	usual := bootqueue.DefaultLimits()
	for name, c := range map[string]struct {
		n    int
		rack func(*muster.Registration)
		want int           // of them boot
		in   time.Duration // until then
	}{
		"racks of 60":   {1000, func(*muster.Registration) {}, 1000, 16 * time.Second},
		"no racks":      {1000, func(r *muster.Registration) { r.Rack = "" }, 1000, 20 * time.Second},
		"all in a rack": {200, func(r *muster.Registration) { r.Rack = "r1" }, usual.Window, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				machines := registered(c.n)
				for i := range machines {
					c.rack(&machines[i])
				}
				s := newSite(t, machines, usual)
				defer s.stop()
				for _, m := range machines {
					if err := s.boots.Start(t.Context(), m.ID, order(wire.BootDiscover, 1)); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(c.in)
				synctest.Wait()
				booting := 0
				for _, st := range s.boots.States() {
					if st.Step == metal.StepBooting {
						booting++
					}
				}
				if booting != c.want {
					t.Errorf("%d boot after %v, not %d", booting, c.in, c.want)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.on) != c.want {
					t.Errorf("%d were switched on, not %d", len(s.on), c.want)
				}
			})
		})
	}
}

// Machines of no rack start as fast as there are many of them, also when they are
// registered later.
func TestRacklessMachinesComeLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		machines := registered(200)
		for i := range machines {
			machines[i].Rack = ""
		}
		s := newSite(t, machines[:10], bootqueue.DefaultLimits())
		defer s.stop()
		start := func(list []muster.Registration) {
			for _, m := range list {
				if err := s.boots.Start(t.Context(), m.ID, order(wire.BootDiscover, 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		start(machines[:10])
		time.Sleep(5 * time.Second)
		if err := s.boots.Register(machines); err != nil {
			t.Fatal(err)
		}
		start(machines[10:])
		time.Sleep(15 * time.Second)
		synctest.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.on) != len(machines) {
			t.Errorf("%d of %d were switched on", len(s.on), len(machines))
		}
	})
}
