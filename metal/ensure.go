package metal

import (
	"context"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// Ensure writes down what machines are to do and begins with it: a machine boots when it
// is its turn in its rack, and goes off in its own time. Observe tells.
func (p *Provider) Ensure(ctx context.Context, wants []provider.DesiredState) []error {
	errs := make([]error, len(wants))
	var all sync.WaitGroup
	for i := range wants {
		all.Go(func() { errs[i] = p.ensure(ctx, &wants[i]) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return errs
		}
	}
	return nil
}

func (p *Provider) ensure(ctx context.Context, w *provider.DesiredState) error {
	u, err := p.unit(w.Machine)
	if err != nil {
		return err
	}
	switch w.Power {
	case provider.PowerOff:
		return p.off(ctx, u)
	case provider.PowerBoot:
		if w.Boot == nil || w.Boot.Attempt < 1 {
			return muster.Errorf(muster.EInvalid, "machine %s is to boot nothing", u.id)
		}
		err := p.boot(ctx, u, *w.Boot)
		u.fail(err)
		return err
	}
	return muster.Errorf(muster.EInvalid, "unknown power %q", w.Power)
}

// boot orders a machine to become a node.
func (p *Provider) boot(ctx context.Context, u *machineState, b provider.Boot) error {
	reg := u.registration()
	if _, err := p.o.Kernels.Of(ctx, b.Image); err != nil {
		return err
	}
	if !u.orders.TryRLock() {
		return muster.Errorf(muster.EConflict, "machine %s is being cut off", u.id).Because(muster.ReasonChangedMeanwhile).WithHint("try again when that is over")
	}
	defer u.orders.RUnlock()
	vlan, egress := 0, muster.EgressNone
	if b.Message != nil {
		if len(messagesOf(reg)) == 0 {
			return muster.Errorf(muster.EInvalid, "machine %s has no interface for messages", u.id).
				WithHint("register it with one: muster machine add --replace ... --message-mac")
		}
		if b.Message.Network.Egress == muster.EgressNAT {
			return muster.Errorf(muster.EInvalid, "bare machines have no outgoing traffic by nat").Because(muster.ReasonEgressRefused).WithHint("ask for egress proxy or none")
		}
		egress = b.Message.Network.Egress
		var ok bool
		if vlan, ok = p.networks.vlan(b.Message.Network.Cluster); !ok {
			return muster.Errorf(muster.EConflict, "cluster %s has no network", b.Message.Network.Cluster)
		}
	}
	// What a tenant may have left is there from now on, whatever becomes of the boot.
	if err := p.markDirty(u.id); err != nil {
		return err
	}
	if p.o.Switches == nil || !p.o.Switches.Known(u.id) {
		p.o.Log.Warn("no network isolation: switch ports not registered", "machine", u.id, "cluster", b.Cluster)
	} else {
		join := func() error { return p.o.Switches.Manage(ctx, u.id) }
		if vlan != 0 {
			join = func() error { return p.o.Switches.Join(ctx, u.id, vlan) }
		}
		if err := join(); err != nil {
			return err
		}
	}
	payload, err := bootDoc.Encode(&b)
	if err != nil {
		return err
	}
	u.cancelPowerOff()
	return p.boots.Start(ctx, u.id, Task{
		Kind: wire.BootImage, Attempt: b.Attempt, Image: b.Image, As: b.Hostname, Egress: egress, Args: b.Shape.BootArgs(), For: string(b.Cluster), Payload: payload,
	})
}

// off powers a machine off: its first program is told so, and its power is taken away
// where that can be done. It returns at once.
func (p *Provider) off(ctx context.Context, u *machineState) error {
	if err := p.boots.Cancel(ctx, u.id); err != nil {
		return err
	}
	if p.o.Switches != nil && p.o.Switches.Known(u.id) {
		if err := p.o.Switches.Leave(ctx, u.id); err != nil {
			p.o.Log.Warn("closing message ports failed", "machine", u.id, "error", err)
		}
	}
	u.cancelPowerOff()
	going, cancel := context.WithCancel(p.ctx)
	u.mu.Lock()
	u.going = cancel
	u.mu.Unlock()
	p.jobs.Go(func() {
		defer p.changed(u.id)
		defer cancel()
		if err := p.powerOff(going, u); going.Err() == nil {
			u.fail(err)
		}
	})
	return nil
}

// powerOff takes a machine's power away and waits for that. Where nobody can, the machine
// itself is told by its first program, and time tells.
func (p *Provider) powerOff(ctx context.Context, u *machineState) error {
	t := p.target(u.registration())
	if able, err := p.o.Power.Abilities(t); err != nil || !able.Off {
		return err
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // whoever asked has gone
	}
	r, err := p.o.Power.Off(ctx, t)
	if muster.CodeOf(err) == muster.EConflict {
		return nil // a newer order took the place of this one
	}
	p.note(u, r, err)
	if r.State == power.Off {
		p.wentOff(u)
	}
	return err
}
