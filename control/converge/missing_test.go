package converge_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
)

// lost is a provider that lists machines and then cannot find them.
type lost struct {
	provider.Provider
	cleans *atomic.Int32
}

func (l lost) Clean(_ context.Context, id muster.MachineID) (muster.CleanRecord, error) {
	l.cleans.Add(1)
	return muster.CleanRecord{}, muster.Errorf(muster.ENotFound, "no machine %s", id)
}

// A machine that nobody can find is not blamed for not being cleaned: it waits.
func TestLostMachineWaitsForItsCleaning(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, fake.Options{Machines: 1})
		var cleans atomic.Int32
		r.wrap = func(_ *server, p provider.Provider) provider.Provider { return lost{p, &cleans} }
		s := r.start()
		until(t, "it is to be cleaned", func() bool { return cleans.Load() > 0 })
		time.Sleep(300 * time.Millisecond)
		if n := cleans.Load(); n != 1 {
			t.Errorf("its cleaning was tried %d times at once", n)
		}
		if n := len(s.machines(muster.MachineCleaning)); n != 1 {
			t.Errorf("it is %s", s.machines()[0].Phase)
		}
	})
}
