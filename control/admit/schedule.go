package admit

import (
	"github.com/muster-hpc/muster/control/calendar"
)

// Scheduled is what the calendar has for a request that waits.
type Scheduled struct {
	Waiting
	// Slot is its place; the zero Slot: no time is known.
	Slot  calendar.Slot
	Known bool
	// Blocks: no time is known since what it waits for has no end. Whatever comes free is
	// its own. Otherwise it waits for machines that are out of reach, and blocks nobody.
	Blocks bool
}

// Schedule enters the requests that wait into snap.Times, in their order, each at the
// earliest time at which there is room beside what is entered already: none is ever
// delayed by one behind it.
func Schedule(snap Snapshot, ahead []Waiting, placer Placer) []Scheduled {
	snap = snap.withHeld()
	out := make([]Scheduled, len(ahead))
	type fit struct {
		*filtered
		need calendar.Need
	}
	known := make(map[wishKey]*fit)
	reach := make([]bool, len(snap.Machines))
	for j := range snap.Machines {
		reach[j] = !outOfReach(stateReason(&snap.Machines[j], "", snap, nil))
	}
	inReach := func(j int) bool { return reach[j] }
	for i, w := range ahead {
		out[i].Waiting = w
		if w.Image == nil {
			continue
		}
		k := keyOf(w, snap)
		f := known[k]
		if f == nil || f.spec.TotalNodes() == f.spec.Nodes && w.Spec.TotalNodes() > w.Spec.Nodes {
			f = &fit{filtered: filter(checksOf(w.Spec, w.Image, snap), w.Spec, snap.Machines)}
			f.need.Lead, f.need.Turn = longestTurnover(snap, snap.Machines, func(j int) bool { return f.failed[j] == 0 })
			f.need.Compute, f.need.Spare = f.places(snap.Times, 0, inReach)
			known[k] = f
		}
		n := f.need
		n.ID, n.Spec, n.After, n.Before = w.Cluster, w.Spec, w.Spec.Start.After, w.Spec.LatestStart()
		if w.Spec.TotalNodes() == w.Spec.Nodes {
			n.Spare = nil
		}
		slot, ok := snap.Times.Earliest(n)
		if ok {
			slot.Plan.Image = w.Image.ID
			snap.Times.Take(slot.Plan, slot.Take, slot.Give)
			out[i].Slot, out[i].Known = slot, true
			continue
		}
		f.spec = w.Spec
		compute, spare := f.pick(0, inReach)
		out[i].Blocks = placer.Capacity(w.Spec, compute, spare) >= max(1, w.Spec.Min)
	}
	return out
}
