package calendar

import (
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/place"
)

// Need is a request as the calendar sees it.
type Need struct {
	// ID seeds the choice among machines that are alike.
	ID   muster.ClusterID
	Spec muster.Spec
	// Compute are the machines that fit its nodes, each of which may carry a head or a
	// login node, too; Spare may carry only these. By their places in the site's list.
	Compute, Spare []int32
	// Lead is how long before its people log in its machines are taken, and Turn how long
	// after their time they are free for others.
	Lead, Turn time.Duration
	// After and Before bound when its people log in. Zero: not bound; never in the past.
	After, Before time.Time
}

// Slot is a place in the calendar.
type Slot struct {
	// Take is when the machines are taken, Start when people log in, End when their
	// time is over (zero: never), and Give when the machines are free for others.
	Take, Start, End, Give time.Time
	Plan                   muster.Plan
}

// slot is the place of a need whose machines are taken at a time.
func (n *Need) slot(take int64) Slot {
	s := Slot{Take: time.Unix(0, take).UTC()}
	s.Start = s.Take.Add(n.Lead)
	if n.Spec.Walltime > 0 {
		s.End = s.Start.Add(time.Duration(n.Spec.Walltime))
		s.Give = s.End.Add(n.Turn)
	}
	return s
}

// length is how long it has its machines.
func (n *Need) length() int64 {
	if n.Spec.Walltime <= 0 {
		return forever
	}
	return int64(n.Lead) + int64(n.Spec.Walltime) + int64(n.Turn)
}

// window is when a machine can be taken for a need, both ends included.
type window struct {
	from, to int64
	machine  int32
	node     bool
}

// scratch is kept between searches, so that thousands of them make no garbage.
type scratch struct {
	windows  []window // a heap by their beginning
	ends     []window // of those that have begun, a heap by their end
	taken    []window // that have begun
	counters map[*place.Grouping]*place.Counter
	compute  []*muster.Machine
	spare    []*muster.Machine
}

// Earliest is the first place in the calendar for a need. It returns false when there is
// none as far as is known: machines that it needs have no end, or its bounds are too
// narrow. The same calendar and need give the same place.
func (t *Timetable) Earliest(n Need) (Slot, bool) {
	take, ok := t.earliest(&n)
	if !ok {
		return Slot{}, false
	}
	s := n.slot(take)
	compute, spare := t.at(take)
	plan, ok := t.planner.Plan(n.ID, n.Spec, compute, spare)
	if !ok {
		return Slot{}, false
	}
	plan.Made = time.Unix(0, t.now).UTC()
	s.Plan = plan
	return s, true
}

// EarliestStart is Earliest without naming machines.
func (t *Timetable) EarliestStart(n Need) (time.Time, bool) {
	take, ok := t.earliest(&n)
	return n.slot(take).Start, ok
}

// earliest leaves the windows of the machines in the scratch.
func (t *Timetable) earliest(n *Need) (int64, bool) {
	low, high := t.now, int64(forever)
	if !n.After.IsZero() {
		low = max(low, n.After.Add(-n.Lead).UnixNano())
	}
	if !n.Before.IsZero() {
		high = n.Before.Add(-n.Lead).UnixNano()
	}
	if high < low {
		return 0, false
	}
	s := &t.scratch
	s.windows = s.windows[:0]
	length := n.length()
	for _, j := range n.Compute {
		t.windows(j, true, low, high, length)
	}
	for _, j := range n.Spare {
		t.windows(j, false, low, high, length)
	}
	// Two heaps instead of sorting: the first place is mostly found long before the last
	// window begins.
	begins := queueOf(s.windows, func(a, b *window) bool { return a.from < b.from })
	ends := queueOf(s.ends[:0], func(a, b *window) bool { return a.to < b.to })
	s.taken = s.taken[:0]
	count := t.counter(n.Spec)
	least := max(1, n.Spec.Min)
	for len(begins.list) > 0 {
		at := begins.list[0].from
		for len(begins.list) > 0 && begins.list[0].from == at {
			w := begins.pop()
			count.Add(w.machine, w.node)
			s.taken = append(s.taken, w)
			if w.to != forever {
				ends.push(w)
			}
		}
		for len(ends.list) > 0 && ends.list[0].to < at {
			w := ends.pop()
			count.Remove(w.machine, w.node)
		}
		if count.Capacity() >= least {
			s.ends = ends.list
			return at, true
		}
	}
	s.ends = ends.list
	return 0, false
}

// windows notes when a machine can be taken for so long, between low and high.
func (t *Timetable) windows(j int32, node bool, low, high, length int64) {
	from := int64(0)
	note := func(to int64) {
		last := int64(forever)
		switch {
		case to == forever:
		case length == forever:
			return
		default:
			last = to - length
		}
		if a, b := max(from, low), last; a <= min(b, high) {
			t.scratch.windows = append(t.scratch.windows, window{a, b, j, node})
		}
	}
	for _, b := range t.busy[j] {
		if b.to <= low {
			from = b.to
			continue
		}
		if b.from > from {
			note(b.from)
		}
		from = b.to
		if from > high {
			return
		}
	}
	if from != forever {
		note(forever)
	}
}

// at lists the machines of the last search that can be taken at a time.
func (t *Timetable) at(take int64) (compute, spare []*muster.Machine) {
	s := &t.scratch
	s.compute, s.spare = s.compute[:0], s.spare[:0]
	for _, w := range s.taken {
		switch {
		case w.to < take:
		case w.node:
			s.compute = append(s.compute, &t.machines[w.machine])
		default:
			s.spare = append(s.spare, &t.machines[w.machine])
		}
	}
	return s.compute, s.spare
}

func (t *Timetable) counter(spec muster.Spec) *place.Counter {
	g := t.grouping(spec)
	c := t.scratch.counters[g]
	if c == nil {
		c = place.NewCounter(g, spec)
		if t.scratch.counters == nil {
			t.scratch.counters = map[*place.Grouping]*place.Counter{}
		}
		t.scratch.counters[g] = c
	}
	c.Reset(spec)
	return c
}
