package allocate

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/topology"
)

// givenLast is a list of machines in which all that stand beside one with the condition switch-down have it, too:
// the switch that they are behind may be down. The list itself is not changed.
func givenLast(tree *topology.Tree, machines []muster.Machine, now time.Time) []muster.Machine {
	said := map[int]muster.Condition{} // by stand
	for i := range machines {
		for _, c := range machines[i].Conditions {
			if c.Code == muster.ConditionSwitchDown && now.Before(c.WithWaiting().Deadline) {
				if tree == nil { // only racks are known
					tree = topology.New(nil, machines)
				}
				said[tree.At(machines[i].ID)] = c
			}
		}
	}
	delete(said, 0) // nobody knows where
	if len(said) == 0 {
		return machines
	}
	out := slices.Clone(machines)
	for i := range out {
		if c, ok := said[tree.At(out[i].ID)]; ok && !muster.HasCondition(out[i].Conditions, c.Code) {
			out[i].Conditions = append(slices.Clone(out[i].Conditions), c)
		}
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
