package ports

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/power"
	"github.com/muster-hpc/muster/metal/switches"
)

// Config says what there is to wire.
type Config struct {
	// Open makes what drives the switch of a name. Nil: DriversOf().Open.
	Open func(name string) (switches.Switch, error)
	// NICs are a machine's interfaces as it is registered; none: nobody knows it.
	NICs func(id muster.MachineID) []muster.RegisteredNIC
	// ManagementVLAN is where machines meet the server; 0: 1.
	ManagementVLAN int
	Log            *slog.Logger
}

// Wiring is the switches of a site. Its methods may be called by many at once.
type Wiring struct {
	c        Config
	mu       sync.Mutex
	switches map[string]switches.Switch
}

var _ power.SwitchPort = (*Wiring)(nil)

// New makes the wiring of a site. It touches no switch yet.
func New(c Config) *Wiring {
	if c.Open == nil {
		c.Open = DriversOf().Open
	}
	if c.ManagementVLAN == 0 {
		c.ManagementVLAN = 1
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Wiring{c: c, switches: map[string]switches.Switch{}}
}

// Known reports whether the machine's place at a switch is known, of each of its
// interfaces: only then can it be cut off.
func (w *Wiring) Known(id muster.MachineID) bool {
	nics := w.c.NICs(id)
	return len(nics) > 0 && !slices.ContainsFunc(nics, func(n muster.RegisteredNIC) bool { return n.Switch == "" })
}

// plugs are the machine's interfaces that are known to be plugged in somewhere, by
// switch.
func (w *Wiring) plugs(id muster.MachineID) map[string][]muster.RegisteredNIC {
	out := map[string][]muster.RegisteredNIC{}
	for _, n := range w.c.NICs(id) {
		if n.Switch != "" {
			out[n.Switch] = append(out[n.Switch], n)
		}
	}
	return out
}

// open returns the switch of a name, the same one each time: it does one change after
// the other.
func (w *Wiring) open(name string) (switches.Switch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.switches[name]; s != nil {
		return s, nil
	}
	s, err := w.c.Open(name)
	if err != nil {
		return nil, err
	}
	w.switches[name] = s
	return s, nil
}

// each does something at switches, at all at the same time: one that does not answer
// does not keep the others.
func each[T any](ctx context.Context, w *Wiring, what map[string]T, do func(ctx context.Context, name string, s switches.Switch, at T) error) error {
	errs := make([]error, len(what))
	var wait sync.WaitGroup
	i := 0
	for name, at := range what {
		to := &errs[i]
		i++
		wait.Go(func() {
			s, err := w.open(name)
			if err == nil {
				err = do(ctx, name, s, at)
			}
			*to = err
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// portsOf reads the ports of interfaces at one switch, in the order of these.
func portsOf(ctx context.Context, s switches.Switch, nics []muster.RegisteredNIC) ([]switches.Port, error) {
	names := make([]string, len(nics))
	for i, n := range nics {
		names[i] = n.Port
	}
	ports, err := s.Ports(ctx, names...)
	if err != nil {
		return nil, err
	}
	out := make([]switches.Port, len(nics))
	for i, n := range nics {
		j := slices.IndexFunc(ports, func(p switches.Port) bool { return p.Port == n.Port })
		if j < 0 {
			return nil, muster.Errorf(muster.EUnavailable, "the switch says nothing of port %s", n.Port).Because(muster.ReasonNoAnswer)
		}
		out[i] = ports[j]
	}
	return out, nil
}
