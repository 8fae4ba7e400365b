package metal

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
)

// Fence makes certain that a machine can neither compute nor speak: its controller
// measures that it has no power, or its switch ports are closed, or a human answers for
// it. The machine itself is not asked.
func (p *Provider) Fence(ctx context.Context, id muster.MachineID) (muster.FenceRecord, error) {
	u, err := p.unit(id)
	if err != nil {
		return muster.FenceRecord{Machine: id, At: p.o.Clock.Now()}, err
	}
	u.orders.Lock()
	defer u.orders.Unlock()
	// From here on nobody gets a task in its name, and nobody switches it on; an order to
	// go off that has not begun yet must not end this one.
	u.cancelPowerOff()
	forgotten := p.boots.Forget(ctx, id)
	rec := p.o.Power.Fence(ctx, p.target(u.registration()))
	rec.Proven = rec.Proven && forgotten == nil
	if !rec.Proven {
		p.o.Log.Error("fencing failed", "machine", id, "steps", rec.Steps, "error", forgotten)
		return rec, muster.Errorf(muster.EUnavailable, "machine %s could not be proven to be cut off", id).Because(muster.ReasonNotFenced).
			WithHint("switch it off by hand, then: muster machine confirm-off %s --yes", id).Wrap(forgotten)
	}
	p.o.Log.Info("machine fenced", "machine", id, "took", rec.Took)
	now := p.o.Clock.Now()
	r, err := p.o.Power.State(ctx, p.target(u.registration()))
	if err != nil {
		r = power.Reading{State: power.Unknown, Text: "its ports are closed"}
	}
	u.look(r, nil, now)
	u.mu.Lock()
	u.cut = r.State != power.Off
	u.mu.Unlock()
	p.changed(id)
	return rec, nil
}
