package place

import (
	"github.com/muster-hpc/muster"
)

// Verify checks a plan against the present records of its machines, within the
// transaction that commits it. Other machines in current are ignored. It
// returns EConflict when a machine is gone, no longer free, or has changed its
// class, fabric or rack, and EInternal when the plan contradicts itself. A plan for
// more nodes has no names yet and no head.
func (p Planner) Verify(plan muster.Plan, current []muster.Machine) error {
	byID := make(map[muster.MachineID]*muster.Machine, len(plan.Assign))
	for _, a := range plan.Assign {
		if _, twice := byID[a.Machine]; twice {
			return muster.Errorf(muster.EInternal, "the plan uses machine %s twice", a.Machine)
		}
		byID[a.Machine] = nil
	}
	for i := range current {
		if _, used := byID[current[i].ID]; used {
			byID[current[i].ID] = &current[i]
		}
	}
	nodes := make(map[string]bool, len(plan.Assign))
	heads, fabric := 0, ""
	for i, a := range plan.Assign {
		if a.Node != "" && nodes[a.Node] {
			return muster.Errorf(muster.EInternal, "the plan names node %s twice", a.Node)
		}
		nodes[a.Node] = true
		if a.Head {
			heads++
		}
		m := byID[a.Machine]
		if m == nil {
			return stale("machine %s is gone", a.Machine)
		}
		if m.Phase != muster.MachineFree || m.Cluster != "" || m.Node != "" {
			return stale("machine %s is no longer free (%s)", a.Machine, m.Phase)
		}
		if m.Intent != muster.IntentNone {
			return stale("machine %s is being taken out of service", a.Machine)
		}
		if m.Facts.Rack != a.Rack {
			return stale("machine %s has moved to another rack", a.Machine)
		}
		if plan.Class != "" && a.Role == muster.RoleCompute && m.Facts.Class != plan.Class {
			return stale("machine %s is no longer of class %s", a.Machine, plan.Class)
		}
		if i == 0 {
			fabric = p.Providers.Fabric(m)
		} else if other := p.Providers.Fabric(m); other != fabric {
			return muster.Errorf(muster.EInternal, "the plan mixes machines of fabrics %s and %s", fabric, other)
		}
	}
	if more := len(plan.Assign) > 0 && plan.Assign[0].Node == ""; !more && heads != 1 {
		return muster.Errorf(muster.EInternal, "the plan has %d heads", heads)
	}
	return nil
}

func stale(format string, args ...any) error {
	return muster.Errorf(muster.EConflict, format, args...).Because(muster.ReasonPlanStale).
		WithHint("the site changed while the request was answered: ask again")
}
