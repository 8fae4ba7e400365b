package converge_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
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
