package ports

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/switches"
)

// Place is where a switch has seen an interface.
type Place struct {
	Switch, Port string
	VLAN         int
	Age          time.Duration // since it was last seen
}

// Where reports where an interface was seen, the latest first, by the switches of these
// names. One that hangs on one switch is seen by others, too, where the cable to that
// switch is. mac is as muster.ParseMAC writes it.
func (w *Wiring) Where(ctx context.Context, mac string, only ...string) ([]Place, error) {
	var mu sync.Mutex
	var out []Place
	names := map[string]struct{}{}
	for _, n := range only {
		names[n] = struct{}{}
	}
	err := each(ctx, w, names, func(ctx context.Context, name string, s switches.Switch, _ struct{}) error {
		seen, err := s.Addresses(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, a := range seen {
			if a.MAC.String() == mac {
				out = append(out, Place{name, a.Port, a.VLAN, a.Age})
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Age, b.Age), cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
	})
	return out, err
}

// Through reports whether the machine speaks through its own port: its switch has seen
// the management interface at the port that is registered, and nowhere else. Trust
// "port" rests on it. False, and no error, where nobody knows its port.
func (w *Wiring) Through(ctx context.Context, id muster.MachineID) (bool, error) {
	nics := w.c.NICs(id)
	i := slices.IndexFunc(nics, func(n muster.RegisteredNIC) bool { return n.Use == muster.UseManagement })
	if i < 0 || nics[i].Switch == "" {
		return false, nil
	}
	n := nics[i]
	places, err := w.Where(ctx, n.MAC, n.Switch)
	if err != nil {
		return false, err
	}
	own := Place{Switch: n.Switch, Port: n.Port, VLAN: w.c.ManagementVLAN}
	for _, p := range places {
		p.Age = 0
		if p != own {
			return false, nil
		}
	}
	return len(places) > 0, nil
}
