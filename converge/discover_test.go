package converge_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/converge"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/store"
)

// deaf is a provider that does not answer until it is told to.
type deaf struct {
	provider.Provider
	hears *atomic.Bool
}

func (d deaf) Discover(ctx context.Context) ([]muster.Machine, error) {
	if !d.hears.Load() {
		return nil, errors.New("no route to the machines")
	}
	return d.Provider.Discover(ctx)
}

func TestDiscoveredMeansOnRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, fake.Options{Machines: 5})
	var hears atomic.Bool
	r.wrap = func(_ *server, p provider.Provider) provider.Provider { return deaf{p, &hears} }
	s := r.start()
	select {
	case <-s.conv.Discovered():
		t.Fatal("machines of a provider that does not answer are said to be known")
	case <-time.After(50 * time.Millisecond):
	}
	hears.Store(true)
	select {
	case <-s.conv.Discovered():
	case <-time.After(20 * time.Second):
		t.Fatal("machines are not found")
	}
	if n := len(s.machines()); n != 5 {
		t.Errorf("%d machines are on record", n)
	}
}

// Machines of a provider that the server was started without are on record,
// and nothing may be placed on them.
func TestMachinesWithoutProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t, fake.Options{Machines: 2})
	s := r.start()
	err := s.db.Update(t.Context(), muster.System(), func(tx *store.Tx) error {
		return tx.PutMachine(muster.Machine{ID: "rack-01", Provider: "rack", Phase: muster.MachineNew}, "found")
	})
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	s = r.start()
	select {
	case <-s.conv.Discovered():
	case <-time.After(20 * time.Second):
		t.Fatal("machines are not found")
	}
	for _, m := range s.machines() {
		absent := slices.ContainsFunc(m.Conditions, func(c muster.Condition) bool { return c.Code == converge.NotAnswering })
		if absent != (m.Provider == "rack") {
			t.Errorf("machine %s of provider %s: not answering: %v", m.ID, m.Provider, absent)
		}
	}
}
