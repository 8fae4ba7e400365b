package powertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/power/bmc"
	"github.com/muster-hpc/muster/metal/power/drivers"
)

// BenchmarkPoll reads the state of 1,000 controllers through Control, with
// sessions that stay open between two rounds and with sessions of their own
// each time. Controllers and Control share the computer.
func BenchmarkPoll(b *testing.B) {
	const machines = 1000
	for _, kind := range []muster.PowerKind{muster.PowerIPMI, muster.PowerRedfish} {
		targets := rackOf(b, kind, machines)
		for name, keep := range map[string]time.Duration{"kept": time.Hour, "closed": -1} {
			b.Run(fmt.Sprintf("%s/sessions=%s", kind, name), func(b *testing.B) {
				c := power.NewControl(power.Config{Drivers: drivers.All(), Times: power.Times{Keep: keep}})
				defer c.Close()
				if keep > 0 {
					poll(b, c, targets) // opens them
				}
				for b.Loop() {
					poll(b, c, targets)
				}
				b.ReportMetric(float64(machines)*float64(b.N)/b.Elapsed().Seconds(), "states/s")
			})
		}
	}
}

func rackOf(b *testing.B, kind muster.PowerKind, n int) []power.Target {
	b.Helper()
	var targets []power.Target
	for i := range n {
		listen := listensIPMI
		if kind == muster.PowerRedfish {
			listen = listensRedfish
		}
		c, _ := controller(b, func(cfg *bmc.Config) { listen(cfg) })
		a := addressIPMI(c)
		if kind == muster.PowerRedfish {
			a = addressRedfish(b, c)
		}
		targets = append(targets, power.Target{Machine: muster.MachineID(fmt.Sprintf("m%04d", i)), Rack: "r", Address: a, Secret: secret})
	}
	return targets
}

func poll(b *testing.B, c *power.Control, targets []power.Target) {
	b.Helper()
	errs := make(chan error, len(targets))
	for _, t := range targets {
		go func() {
			r, err := c.State(context.Background(), t)
			if err == nil && r.State != power.Off {
				err = fmt.Errorf("%s is %s", t.Machine, r.State)
			}
			errs <- err
		}()
	}
	for range targets {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
}
