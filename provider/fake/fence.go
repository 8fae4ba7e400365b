package fake

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
)

// Fence cuts the machine's power and looks whether it is off.
func (p *Provider) Fence(ctx context.Context, id muster.MachineID) (muster.FenceRecord, error) {
	w := p.w
	r := muster.FenceRecord{Machine: id, At: w.o.Clock.Now()}
	if err := w.call(ctx); err != nil {
		return r, err
	}
	if err := w.pause(ctx, w.o.FenceTime); err != nil {
		return r, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.byID[id]
	if m == nil {
		return r, muster.Errorf(muster.ENotFound, "there is no machine %s", id).Because(muster.ReasonNoSuchMachine)
	}
	r.Took = muster.Duration(w.o.Clock.Now().Sub(r.At))
	if m.fences > 0 {
		m.fences--
		r.Steps = []muster.CleanStep{{What: "power", Check: "its power is off"}}
		return r, muster.Errorf(muster.EUnavailable, "machine %s could not be proven to be cut off", id).Because(muster.ReasonNotFenced).
			WithHint("its management controller does not answer")
	}
	if m.state != provider.StateOff {
		m.halt()
		w.tell(id)
	}
	m.fenced++
	r.Steps = []muster.CleanStep{
		{What: "power", Check: "its power is off", OK: true},
		{What: "ports", Check: "its switch ports are closed", OK: true},
	}
	r.Proven = true
	return r, nil
}
