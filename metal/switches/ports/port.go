package ports

import (
	"context"
	"strings"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/switches"
)

// sleepingSpeed is how fast the link of a network card is at most while it only waits
// to be woken, in bits/s. Without the machine's power a card has what mains leave it,
// and keeps the slowest link that it knows: 10 Mb/s, and 100 Mb/s where it has no
// slower one, as cards for 10 Gb/s over copper. No machine that computes has such a
// link by intention; one that has it for a fault (a bad cable) is not believed to be
// off by this alone.
const sleepingSpeed = 100e6

// Close implements power.SwitchPort: all ports of the machine are closed when it returns
// nil, and no switch of theirs sees it anywhere else. Returns EUnavailable when the
// place of an interface is not known, or it is seen at another port than registered:
// then nobody can tell whether it is cut off. What is known is closed all the same.
func (w *Wiring) Close(ctx context.Context, id muster.MachineID) error {
	plugs := w.plugs(id)
	if len(plugs) == 0 {
		return unknown(id, w.c.NICs(id))
	}
	err := each(ctx, w, plugs, func(ctx context.Context, _ string, s switches.Switch, nics []muster.RegisteredNIC) error {
		names := make([]string, len(nics))
		for i, n := range nics {
			names[i] = n.Port
		}
		if err := switches.Close(ctx, s, names...); err != nil {
			return err
		}
		return notElsewhere(ctx, id, s, nics)
	})
	if err == nil && !w.Known(id) {
		err = unknown(id, w.c.NICs(id))
	}
	if err != nil {
		return err
	}
	w.c.Log.Info("switch ports closed", "machine", id)
	return nil
}

// unknown is the error of a machine that cannot be cut off.
func unknown(id muster.MachineID, nics []muster.RegisteredNIC) error {
	var missing []string
	for _, n := range nics {
		if n.Switch == "" {
			missing = append(missing, n.Use+" "+n.MAC)
		}
	}
	what := "any of its interfaces"
	if len(missing) < len(nics) {
		what = strings.Join(missing, ", ")
	}
	return muster.Errorf(muster.EUnavailable, "%s: its switch ports are not registered, of %s", id, what).
		WithHint("name switch and port of each interface in its registration")
}

// notElsewhere refuses to believe that a machine is cut off which its switch sees at
// another port: then the registration names somebody else's.
func notElsewhere(ctx context.Context, id muster.MachineID, s switches.Switch, nics []muster.RegisteredNIC) error {
	seen, err := s.Addresses(ctx)
	if err != nil {
		return err
	}
	for _, n := range nics {
		for _, a := range seen {
			if a.MAC.String() == n.MAC && a.Port != n.Port {
				return muster.Errorf(muster.EUnavailable, "%s: port %s is closed, and its interface %s was seen at port %s", id, n.Port, n.MAC, a.Port).
					WithHint("see where its cables lead, and correct its registration")
			}
		}
	}
	return nil
}

// Link implements power.SwitchPort. A machine counts as closed when nothing can be seen of
// it because its management port was closed on this side.
func (w *Wiring) Link(ctx context.Context, id muster.MachineID) (power.Link, error) {
	var mu sync.Mutex
	awake, asleep, shut, watched := false, false, false, false
	err := each(ctx, w, w.plugs(id), func(ctx context.Context, _ string, s switches.Switch, nics []muster.RegisteredNIC) error {
		ports, err := portsOf(ctx, s, nics)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for i, n := range nics {
			p, management := ports[i], n.Use == muster.UseManagement
			watched = watched || management
			switch {
			case p.Closed:
				shut = shut || management
			case p.Link && p.Speed > 0 && p.Speed <= sleepingSpeed:
				asleep = true
			case p.Link:
				awake = true
			}
		}
		return nil
	})
	if err != nil {
		return power.Link{}, err
	}
	up := awake || asleep
	return power.Link{Up: up, Asleep: asleep && !awake, Closed: shut && !up, Unknown: !watched && !up}, nil
}
