package metal

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
)

// target is how a machine is switched.
func (p *Provider) target(r muster.Registration) power.Target {
	t := power.Target{Machine: r.ID, Rack: r.Rack, Address: r.Power, Secret: func(ctx context.Context) ([]byte, error) {
		return p.o.Registry.Password(ctx, r.ID)
	}}
	if r.Power.Kind == muster.PowerIPMI {
		if t.Address.BootMode == "" { // its boot flag says one or the other
			t.Address.BootMode = p.boots.BootMode(r)
		}
		t.Key = func(ctx context.Context) ([]byte, error) { return p.o.Registry.PowerKey(ctx, r.ID) }
	}
	for _, n := range r.NICs {
		if n.Use == muster.UseManagement || r.Power.Kind == muster.PowerScript {
			t.MACs = append(t.MACs, n.MAC)
		}
	}
	if r.Power.Kind == muster.PowerWOL && r.Power.Address == "" && r.Power.Interface == "" {
		// A frame to everybody on the wire: the card of a machine that is off has no
		// address.
		t.Address.Interface = p.o.Interface
	}
	return t
}

// switchOn makes a machine boot from the network: the part of a boot that Boots leaves to
// others.
func (p *Provider) switchOn(ctx context.Context, id muster.MachineID) error {
	u, err := p.unit(id)
	if err != nil {
		return err
	}
	r, err := p.o.Power.Boot(ctx, p.target(u.registration()))
	p.note(u, r, err)
	return err
}

// note files what a task for a machine's power came to.
func (p *Provider) note(u *machineState, r power.Result, err error) {
	if err != nil && r.State == "" {
		return
	}
	text := ""
	if n := len(r.Steps); n > 0 {
		text = r.Steps[n-1].Check
	}
	if u.look(power.Reading{State: r.State, Proof: r.Proof, Text: text}, nil, p.o.Clock.Now()) {
		p.changed(u.id)
	}
}
