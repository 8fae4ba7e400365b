package metal

import (
	"cmp"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// BootOf is the last boot of a machine, as an administrator sees it; false if there is
// none.
func (b *Boots) BootOf(id muster.MachineID) (wire.MachineBoot, bool) {
	for _, s := range b.States(id) {
		return s.told(), true
	}
	return wire.MachineBoot{}, false
}

// Queue is who waits for its turn in a rack, in order; "": in any rack, one after the
// other.
func (b *Boots) Queue(rack string) []wire.QueuedBoot {
	var out []wire.QueuedBoot
	for _, s := range b.States() {
		if s.Step != StepQueued {
			continue
		}
		b.mu.Lock()
		in := ""
		if m := b.machines[s.Machine]; m != nil {
			in = m.reg.Rack
		}
		b.mu.Unlock()
		if rack == "" || in == rack {
			out = append(out, wire.QueuedBoot{Machine: s.Machine, Rack: in, Kind: s.Kind, Ordered: s.Since, BootPlace: s.place()})
		}
	}
	slices.SortStableFunc(out, func(x, y wire.QueuedBoot) int {
		return cmp.Or(cmp.Compare(x.Rack, y.Rack), cmp.Compare(x.Place, y.Place))
	})
	return out
}

func (s State) place() wire.BootPlace {
	return wire.BootPlace{Place: s.Place.Ahead + 1, ETA: s.Place.ETA}
}

// told is a state as it crosses the API.
func (s State) told() wire.MachineBoot {
	out := wire.MachineBoot{
		Machine: s.Machine, Kind: s.Kind, Step: string(s.Step), Attempt: s.Attempt, Ordered: s.Since, Since: s.Changed,
		Trust: s.Trust, Doing: s.Doing, Stages: s.Stages, Failure: s.Failure, Done: s.Done,
	}
	if s.Step == StepQueued {
		p := s.place()
		out.Queue = &p
	}
	if s.Address.IsValid() {
		out.Address = s.Address.String()
	}
	return out
}
