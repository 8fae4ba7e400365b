package metal

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/power"
)

// target is how a machine is switched.
func (p *Provider) target(r muster.Registration) power.Target {
	a := power.Address{Kind: power.Kind(r.Power.Kind), User: r.Power.User, Quirk: r.Power.Quirk, Secret: func(ctx context.Context) ([]byte, error) {
		return p.o.Registry.Password(ctx, r.ID)
	}}
	switch r.Power.Kind {
	case muster.PowerScript:
		a.Program = r.Power.Address
	default:
		a.Host, a.Port = muster.HostPort(r.Power.Address)
		a.System = r.Power.System
	}
	if r.Power.Kind == muster.PowerWOL {
		// A packet to everybody on the wire: the card of a machine that is off has no
		// address.
		a.Interface, a.MACs = p.o.Interface, []string{managementOf(r)}
	}
	if r.Power.CertificateSHA256 != "" {
		a.Certificate = "sha256:" + r.Power.CertificateSHA256
	}
	return power.Target{Machine: r.ID, Rack: r.Rack, Address: a}
}

// switchOn has a machine boot from the network: the part of a boot that Boots leaves to
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

// note files what an order for a machine's power came to.
func (p *Provider) note(u *unit, r power.Result, err error) {
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
