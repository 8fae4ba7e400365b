package admit

import (
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
)

// withHeld is the snapshot with its held parts known.
func (s Snapshot) withHeld() Snapshot {
	if s.Held == nil {
		s.Held = place.HeldParts(s.Machines)
	}
	return s
}

// partInUse reports whether a machine that is free shares a part with one that is in use.
func (s *Snapshot) partInUse(m *muster.Machine) bool {
	for _, p := range m.Facts.Parts {
		if s.Held[p] {
			return true
		}
	}
	return false
}

// alsoRivals reserves the machines that share a part with one that is reserved.
func alsoRivals(machines []muster.Machine, reserved map[*muster.Machine]bool) {
	parts := map[string]bool{}
	for m := range reserved {
		for _, p := range m.Facts.Parts {
			parts[p] = true
		}
	}
	if len(parts) == 0 {
		return
	}
	for j := range machines {
		for _, p := range machines[j].Facts.Parts {
			if parts[p] {
				reserved[&machines[j]] = true
				break
			}
		}
	}
}
