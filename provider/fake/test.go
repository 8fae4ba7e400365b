package fake

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// Test pretends to try the machine.
func (p *Provider) Test(ctx context.Context, id muster.MachineID, effort int) (muster.TestRecord, error) {
	w := p.w
	r := muster.TestRecord{Machine: id, At: w.o.Clock.Now()}
	if err := w.call(ctx); err != nil {
		return r, err
	}
	w.mu.Lock()
	m := w.byID[id]
	switch {
	case m == nil || m.absent:
		w.mu.Unlock()
		return r, muster.Errorf(muster.ENotFound, "machine %s does not answer", id)
	case m.state != provider.StateOff:
		w.mu.Unlock()
		return r, muster.Errorf(muster.EConflict, "machine %s is running", id).Because(muster.ReasonMachineInUse).WithHint("only a machine that is off can be tested")
	case m.dark:
		w.mu.Unlock()
		return r, muster.Errorf(muster.EUnavailable, "machine %s has no power", id)
	}
	w.mu.Unlock()
	if err := w.pause(ctx, w.o.TestTime); err != nil {
		return r, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m.tested++
	bad := m.tests != 0 || m.chance(5, m.tested, w.o.Rates.Test)
	if m.tests > 0 {
		m.tests--
	}
	r.Took = muster.Duration(w.o.Clock.Now().Sub(r.At))
	r.Steps = []muster.CleanStep{
		{What: "processors", Check: "every result is right", OK: true},
		{What: "memory", Check: "it holds what is written to it", OK: !bad},
		{What: "off again", Check: "its power is off", OK: true},
	}
	r.Passed = !bad
	return r, nil
}
