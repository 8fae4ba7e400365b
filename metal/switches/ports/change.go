package ports

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/switches"
)

// Join puts a machine into the network of a cluster: its message ports are in that
// VLAN, open and not isolated; its management port is open, whoever closed it. It
// returns nil once the switches have been read and say so, and also for a machine
// whose ports nobody knows: ask Known. EInvalid, ENotFound and EUnavailable are
// switches.Switch's.
func (w *Wiring) Join(ctx context.Context, id muster.MachineID, vlan int) error {
	return w.JoinAll(ctx, map[muster.MachineID]int{id: vlan})
}

// JoinAll is Join for many machines: one change of each switch that they hang on.
func (w *Wiring) JoinAll(ctx context.Context, vlans map[muster.MachineID]int) error {
	wants := map[string][]switches.Want{}
	for id, vlan := range vlans {
		if vlan == w.c.ManagementVLAN {
			return muster.Errorf(muster.EInvalid, "%s: %d is the network of management, and no cluster's", id, vlan).
				WithHint("keep it out of the networks that are for clusters")
		}
		for name, nics := range w.plugs(id) {
			for _, n := range nics {
				want := switches.Want{Port: n.Port, VLAN: vlan}
				if n.Use == muster.UseManagement {
					want = w.management(n.Port)
				}
				wants[name] = append(wants[name], want)
			}
		}
	}
	return each(ctx, w, wants, w.set)
}

// management is how a management port is.
func (w *Wiring) management(port string) switches.Want {
	return switches.Want{Port: port, VLAN: w.c.ManagementVLAN, Isolated: true}
}

func (w *Wiring) set(ctx context.Context, name string, s switches.Switch, wants []switches.Want) error {
	if err := s.Set(ctx, wants...); err != nil {
		return err
	}
	w.c.Log.Debug("switch ports configured", "switch", name, "ports", len(wants))
	return nil
}

// Leave takes a machine out of its cluster's network: its message ports are closed
// when it returns nil. The management port stays as it is.
func (w *Wiring) Leave(ctx context.Context, id muster.MachineID) error {
	return w.shut(ctx, id, func(muster.RegisteredNIC) (switches.Want, bool) { return switches.Want{}, false })
}

// Manage leaves a machine nobody to speak to but the server, for discovery, tests and
// cleaning: its management port is open, its message ports are closed.
func (w *Wiring) Manage(ctx context.Context, id muster.MachineID) error {
	return w.shut(ctx, id, func(n muster.RegisteredNIC) (switches.Want, bool) { return w.management(n.Port), true })
}

// shut closes message ports, in one change with what is wanted of management ports.
func (w *Wiring) shut(ctx context.Context, id muster.MachineID, management func(muster.RegisteredNIC) (switches.Want, bool)) error {
	return each(ctx, w, w.plugs(id), func(ctx context.Context, name string, s switches.Switch, nics []muster.RegisteredNIC) error {
		ports, err := portsOf(ctx, s, nics)
		if err != nil {
			return err
		}
		var wants []switches.Want
		for i, n := range nics {
			if n.Use != muster.UseManagement {
				closed := ports[i].Want
				closed.Closed = true
				wants = append(wants, closed)
			} else if want, ok := management(n); ok {
				wants = append(wants, want)
			}
		}
		return w.set(ctx, name, s, wants)
	})
}
