package calendar

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
)

// forever is a time that never comes.
const forever = math.MaxInt64

// span is a time in which a machine is taken, in nanoseconds since 1970: from included, to
// not.
type span struct{ from, to int64 }

// Timetable is when each machine of a site is taken. It is for one goroutine.
type Timetable struct {
	now       int64
	machines  []muster.Machine
	planner   place.Planner
	index     map[muster.MachineID]int32
	busy      [][]span  // by machine: sorted, apart from each other
	rivals    [][]int32 // by machine: those that share a part with it; nil: none do
	groupings map[grouping]*place.Grouping
	scratch   scratch
}

// grouping is what a division of the machines depends on.
type grouping struct {
	mixed  bool
	within string
}

// New makes a Timetable in which every machine is free. The machines are not copied.
func New(now time.Time, machines []muster.Machine, planner place.Planner) *Timetable {
	t := &Timetable{
		now: now.UnixNano(), machines: machines, planner: planner,
		index: make(map[muster.MachineID]int32, len(machines)), busy: make([][]span, len(machines)), groupings: map[grouping]*place.Grouping{},
	}
	for j := range machines {
		t.index[machines[j].ID] = int32(j)
	}
	t.rivals = rivals(machines)
	return t
}

// Clone makes a Timetable that changes on its own.
func (t *Timetable) Clone() *Timetable {
	c := *t
	c.busy = slices.Clone(t.busy) // block never changes a list in place
	c.groupings = maps.Clone(t.groupings)
	c.scratch = scratch{}
	return &c
}

// nanos is a time as spans have it; zero: forever.
func nanos(at time.Time) int64 {
	if at.IsZero() {
		return forever
	}
	return at.UnixNano()
}

// Block enters that a machine is taken from a time until another. until zero: for good.
// Machines that are not there are passed over.
func (t *Timetable) Block(id muster.MachineID, from, until time.Time) {
	if j, ok := t.index[id]; ok {
		t.block(j, span{from.UnixNano(), nanos(until)})
	}
}

// block enters a span, for the machines that share a part with this one, too.
func (t *Timetable) block(j int32, s span) {
	if s.from >= s.to {
		return
	}
	t.enter(j, s)
	if t.rivals != nil {
		for _, r := range t.rivals[j] {
			t.enter(r, s)
		}
	}
}

// enter enters a span, joined with those that it touches.
func (t *Timetable) enter(j int32, s span) {
	list := t.busy[j]
	first := 0
	for first < len(list) && list[first].to < s.from {
		first++
	}
	last := first
	for last < len(list) && list[last].from <= s.to {
		s.from, s.to = min(s.from, list[last].from), max(s.to, list[last].to)
		last++
	}
	out := make([]span, 0, len(list)+1-(last-first))
	out = append(append(append(out, list[:first]...), s), list[last:]...)
	t.busy[j] = out
}

// Free reports whether a machine is free from a time until another. until zero: for good.
func (t *Timetable) Free(id muster.MachineID, from, until time.Time) bool {
	j, ok := t.index[id]
	return ok && t.free(j, from.UnixNano(), nanos(until))
}

func (t *Timetable) free(j int32, from, to int64) bool {
	for _, s := range t.busy[j] {
		if s.from < to && from < s.to {
			return false
		}
		if s.from >= to {
			break
		}
	}
	return true
}

// FreeUntil is when a machine that is free at a time is taken next; the zero time: never.
// It returns false when it is taken then.
func (t *Timetable) FreeUntil(id muster.MachineID, at time.Time) (time.Time, bool) {
	j, ok := t.index[id]
	if !ok {
		return time.Time{}, false
	}
	n := at.UnixNano()
	for _, s := range t.busy[j] {
		switch {
		case s.to <= n:
		case s.from <= n:
			return time.Time{}, false
		default:
			return time.Unix(0, s.from), true
		}
	}
	return time.Time{}, true
}

// Take enters the machines of a plan from a time until another. until zero: for good.
func (t *Timetable) Take(plan muster.Plan, from, until time.Time) {
	for _, a := range plan.Assign {
		t.Block(a.Machine, from, until)
	}
}

// Holds reports whether all machines of a plan are there and free from a time until another.
func (t *Timetable) Holds(plan muster.Plan, from, until time.Time) bool {
	for _, a := range plan.Assign {
		if !t.Free(a.Machine, from, until) {
			return false
		}
	}
	return true
}

// grouping is the division of the machines for requests like spec.
func (t *Timetable) grouping(spec muster.Spec) *place.Grouping {
	k := grouping{spec.Mixed, spec.Within}
	g := t.groupings[k]
	if g == nil {
		g = t.planner.Grouping(t.machines, spec.Mixed, spec.Within)
		t.groupings[k] = g
	}
	return g
}

// Place is where a machine stands in the site's list. guess is tried first.
func (t *Timetable) Place(id muster.MachineID, guess int) (int32, bool) {
	if guess < len(t.machines) && t.machines[guess].ID == id {
		return int32(guess), true
	}
	j, ok := t.index[id]
	return j, ok
}
