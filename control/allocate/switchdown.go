package allocate

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// withoutPast is a list of machines without the conditions switch-down whose time is over. The list itself is not
// changed.
func withoutPast(machines []muster.Machine, now time.Time) []muster.Machine {
	past := func(c muster.Condition) bool {
		return c.Code == muster.ConditionSwitchDown && !now.Before(c.WithWaiting().Deadline)
	}
	out, own := machines, false
	for i := range machines {
		if !slices.ContainsFunc(machines[i].Conditions, past) {
			continue
		}
		if !own {
			out, own = slices.Clone(machines), true
		}
		out[i].Conditions = slices.DeleteFunc(slices.Clone(machines[i].Conditions), past)
	}
	return out
}

// unreached is one of the machines of a promise that stand behind a switch that may be down; "": none does.
func (s *Site) unreached(p muster.Plan) muster.MachineID {
	for _, as := range p.Assign {
		if j, ok := s.snap.Times.Place(as.Machine, len(s.snap.Machines)); ok && muster.HasCondition(s.snap.Machines[j].Conditions, muster.ConditionSwitchDown) {
			return as.Machine
		}
	}
	return ""
}

// avoid gives a promise machines whose switches are not known to be down, if there are enough at its time. Else
// it keeps its own: the switch may be back by then.
func (a *Allocator) avoid(site *Site, c muster.Cluster, img *muster.Image) (text string, next *muster.Promise) {
	p := *c.Promise
	id := site.unreached(p.Plan)
	if id == "" {
		return "", nil
	}
	c.Spec.Walltime = muster.Duration(p.End.Sub(p.Start))
	c.Spec.Start = muster.Start{After: p.Start, Before: p.Start}
	slot, ok := site.elsewhere(c, img)
	if !ok || !slot.Start.Equal(p.Start) || site.unreached(slot.Plan) != "" {
		return "", nil
	}
	p.Plan, p.End, p.Lead = slot.Plan, slot.End, muster.Duration(slot.Start.Sub(slot.Take))
	return fmt.Sprintf("machine %s is behind a switch that is not reached: others take its place in the promise", id), &p
}
