package converge_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/converge"
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
	pretended(t, func(t *testing.T) {
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
	})
}

// Machines of a provider that the server was started without are on record,
// and nothing may be placed on them.
func TestMachinesWithoutProvider(t *testing.T) {
	pretended(t, func(t *testing.T) {
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
	})
}

// late is a provider of which one machine is not there until it says so.
type late struct {
	provider.Provider
	shown   *atomic.Bool
	hidden  *atomic.Value // muster.MachineID
	changes chan muster.MachineID
}

func (l late) Discover(ctx context.Context) ([]muster.Machine, error) {
	list, err := l.Provider.Discover(ctx)
	if !l.shown.Load() && len(list) > 0 {
		l.hidden.Store(list[0].ID)
		list = list[1:]
	}
	return list, err
}

func (l late) Changes() <-chan muster.MachineID { return l.changes }

// A machine of which a provider tells for the first time is taken in at once, and not when
// all of them are looked at again.
func TestNewMachineIsTakenIn(t *testing.T) {
	pretended(t, func(t *testing.T) {
		r := newRig(t, fake.Options{Machines: 3})
		var shown atomic.Bool
		var hidden atomic.Value
		changes := make(chan muster.MachineID, 1)
		r.wrap = func(_ *server, p provider.Provider) provider.Provider { return late{p, &shown, &hidden, changes} }
		s := r.start()
		<-s.conv.Discovered()
		first := s.machines()
		if len(first) != 2 {
			t.Fatalf("%d machines are on record", len(first))
		}
		shown.Store(true)
		changes <- hidden.Load().(muster.MachineID)
		time.Sleep(10 * time.Second)
		if n := len(s.machines()); n != 3 {
			t.Fatalf("%d machines are on record after 10 s", n)
		}
	})
}
