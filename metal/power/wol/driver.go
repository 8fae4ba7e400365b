// Package wol wakes machines by magic packets. Wake-on-LAN can do no more: a
// machine is switched off by its agent or by a human, and its state is what
// its silence and its link say. All of these are passed in as power.Deps.
package wol

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
)

const (
	// A packet may be lost, and nobody would tell.
	times = 3
	gap   = 100 * time.Millisecond
	// silent is how long a machine must have said nothing to count as silent:
	// three heartbeats of its agent.
	silent = 9 * time.Second
)

// Maker gives this driver to power.Drivers.
func Maker() power.Maker { return power.Maker{New: open, Unusable: unusable} }

// unusable looks whether the server has the interface.
func unusable(a muster.PowerAddress) []muster.Problem {
	if a.Interface == "" {
		return nil
	}
	if _, err := net.InterfaceByName(a.Interface); err == nil {
		return nil
	}
	hint := "leave it out: packets go out of the boot network's"
	if list, err := net.Interfaces(); err == nil && len(list) > 0 {
		names := make([]string, len(list))
		for i, l := range list {
			names[i] = l.Name
		}
		hint = "it has " + strings.Join(names[:min(len(names), mostNames)], ", ")
	}
	return []muster.Problem{{Field: "power.interface", Reason: muster.ReasonBadValue, Message: "the server has no interface " + a.Interface, Hint: hint}}
}

// mostNames is how many interfaces a message names.
const mostNames = 16

type driver struct {
	t     power.Target
	parts power.Deps
	clock muster.Clock
	macs  []net.HardwareAddr
	send  sender
}

func open(t power.Target, parts power.Deps) (power.Driver, error) {
	d := &driver{t: t, parts: parts, clock: parts.Clock}
	if d.clock == nil {
		d.clock = muster.SystemClock{}
	}
	for _, m := range t.MACs {
		mac, err := net.ParseMAC(m)
		if err != nil {
			return nil, muster.Errorf(muster.EInvalid, "%s is not an Ethernet address", m)
		}
		d.macs = append(d.macs, mac)
	}
	if t.Address.Interface != "" {
		d.send = ethernet{t.Address.Interface}
	} else {
		host, port := t.Address.Endpoint()
		d.send = broadcast{host, port}
	}
	return d, nil
}

// Abilities: it proves nothing. A machine that is silent and has no link may
// run and be heard again.
func (d *driver) Abilities() power.Abilities {
	return power.Abilities{
		Off:   d.parts.Agent != nil || d.parts.ManualFence != nil,
		State: d.parts.Liveness != nil && d.parts.SwitchPort != nil,
	}
}

// On sends each interface's packet three times.
func (d *driver) On(ctx context.Context) error {
	var password []byte
	if d.t.Secret != nil {
		secret, err := d.t.Secret(ctx)
		if err != nil {
			return muster.Errorf(muster.EUnauth, "its SecureOn password cannot be fetched").Wrap(err)
		}
		if password, err = parsePassword(secret); err != nil {
			return err
		}
	}
	for i := range times {
		if i > 0 {
			select {
			case <-d.clock.After(gap):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		for _, mac := range d.macs {
			if err := d.send.send(ctx, packet(mac, password)); err != nil {
				return muster.Errorf(muster.EUnavailable, "the packet that wakes it could not be sent").
					WithHint("see that this server has an interface in the machine's network, and is allowed to use it").Wrap(err)
			}
		}
	}
	return nil
}

// Off makes the agent do it, if that answers, otherwise a human.
func (d *driver) Off(ctx context.Context) error {
	if d.parts.Agent != nil {
		err := d.parts.Agent.Off(ctx, d.t.Machine)
		if err == nil || d.parts.ManualFence == nil {
			return err
		}
	}
	if d.parts.ManualFence == nil {
		return muster.Errorf(muster.EInvalid, "Wake-on-LAN cannot power off, and no other power control is configured").Because(muster.ReasonCannotSwitchOff).
			WithHint("switch it off by hand")
	}
	_, err := d.parts.ManualFence.Off(ctx, d.t.Machine, "it has no controller, and its agent did not switch it off")
	return err
}

// State is on for who was heard, off for who is silent and without a link, or
// with one that only waits to be woken; otherwise nobody knows.
func (d *driver) State(ctx context.Context) (power.Reading, error) {
	if !d.Abilities().State {
		return power.Reading{State: power.Unknown, Text: "unknown: Wake-on-LAN has no status, and its link is not monitored"}, nil
	}
	heard, err := d.parts.Liveness.Heard(ctx, d.t.Machine)
	if err != nil {
		return power.Reading{}, err
	}
	ago := d.clock.Now().Sub(heard)
	if !heard.IsZero() && ago < silent {
		return power.Reading{State: power.On, Proof: power.ProofAttested, Text: "it was heard " + ago.Round(time.Second).String() + " ago"}, nil
	}
	link, err := d.parts.SwitchPort.Link(ctx, d.t.Machine)
	if err != nil {
		return power.Reading{}, err
	}
	switch {
	case link.Unknown:
		return power.Reading{State: power.Unknown, Text: "no answer, and its switch port is not known"}, nil
	case link.Closed:
		return power.Reading{State: power.Unknown, Text: "it is silent because its ports are closed"}, nil
	case !link.Up:
		return power.Reading{State: power.Off, Proof: power.ProofSilence, Text: "it is silent and has no link"}, nil
	case link.Asleep:
		return power.Reading{State: power.Off, Proof: power.ProofSilence, Text: "it is silent, and its link is as slow as a sleeping card keeps it"}, nil
	}
	return power.Reading{State: power.Unknown, Text: "it is silent and has a link"}, nil
}

// Close has nothing to close.
func (d *driver) Close(context.Context) error { return nil }
