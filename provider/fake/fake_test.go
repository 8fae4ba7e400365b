package fake_test

import (
	"context"
	"testing"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/provider/providertest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	idle := func(ctx context.Context, _ *fake.Machine, _ provider.Boot) { <-ctx.Done() }
	w := fake.New(fake.Options{Machines: 3, Agent: idle, CleanTime: time.Millisecond})
	defer w.Close()
	providertest.Suite(t, providertest.Subject{
		Open:   func(*testing.T) provider.Provider { return w.Open() },
		Image:  "sha256:1",
		SSH:    true,
		Freeze: func(_ *testing.T, _ provider.Provider, id muster.MachineID) { w.Hang(id) },
		Spoil: func(_ *testing.T, _ provider.Provider, id muster.MachineID) func() {
			w.FailTests(id, -1)
			return func() { w.FailTests(id, 0) }
		},
		Die: func(_ *testing.T, _ provider.Provider, id muster.MachineID) { w.Kill(id) },
	})
	if run, dirty := w.Running(), w.Dirty(); len(run) != 0 || len(dirty) == 0 {
		t.Errorf("running %v, dirty %v", run, dirty)
	}
}

func TestWorld(t *testing.T) {
	t.Parallel()
	w := fake.New(fake.Options{Machines: 70, Classes: 2})
	defer w.Close()
	machines, err := w.Open().Discover(t.Context())
	if err != nil || len(machines) != 70 {
		t.Fatal(len(machines), err)
	}
	classes, racks, addresses := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, m := range machines {
		classes[m.Facts.Class]++
		racks[m.Facts.Rack]++
		addresses[m.Facts.Management.String()] = true
	}
	if len(classes) != 2 || len(racks) != 3 || len(addresses) != 70 {
		t.Errorf("classes %v, racks %v, %d addresses", classes, racks, len(addresses))
	}
	w.Hide("fake-0001", true)
	if machines, _ = w.Open().Discover(t.Context()); len(machines) != 69 {
		t.Errorf("%d machines answer", len(machines))
	}
}

func TestRatesRepeatWithTheSeed(t *testing.T) {
	t.Parallel()
	refused := func() (list []bool) {
		w := fake.New(fake.Options{Machines: 50, Seed: 5, Rates: fake.Rates{Refuse: 0.5}, Agent: func(context.Context, *fake.Machine, provider.Boot) {}})
		defer w.Close()
		p := w.Open()
		machines, _ := p.Discover(t.Context())
		for _, m := range machines {
			errs := p.Ensure(t.Context(), []provider.DesiredState{{Machine: m.ID, Power: provider.PowerBoot, Boot: &provider.Boot{Attempt: 1}}})
			list = append(list, errs != nil)
		}
		return list
	}
	a, b := refused(), refused()
	n := 0
	for i := range a {
		if a[i] != b[i] {
			t.Fatal("the same seed gave other faults")
		}
		if a[i] {
			n++
		}
	}
	if n < 10 || n > 40 {
		t.Errorf("%d of 50 refused at a rate of one half", n)
	}
}
