package limit

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
)

// Usage is what somebody holds and has booked.
type Usage struct {
	// Machines, Cores and Accelerators are held now.
	Machines, Cores, Accelerators int
	Promises                      int
	// Booked is machines times how long, within the period.
	Booked time.Duration
	spans  []span
}

// span is what one cluster has from a time until another. until zero: its end is not known.
type span struct {
	from, until time.Time
	has         Amount
}

// Amount is what is in use at once.
type Amount struct{ Machines, Cores, Accelerators int }

func amount(list []Hardware) Amount {
	a := Amount{Machines: len(list)}
	for _, h := range list {
		a.Cores += h.Cores
		a.Accelerators += h.Accelerators
	}
	return a
}

func (a Amount) plus(b Amount, sign int) Amount {
	return Amount{a.Machines + sign*b.Machines, a.Cores + sign*b.Cores, a.Accelerators + sign*b.Accelerators}
}

// IsZero reports whether nothing is held and nothing booked.
func (u *Usage) IsZero() bool {
	return u.Machines == 0 && u.Cores == 0 && u.Accelerators == 0 && u.Promises == 0 && u.Booked == 0
}

// Peak is the most of each that is in use at once within a time. until zero: for good.
func (u *Usage) Peak(from, until time.Time) Amount {
	type change struct {
		at   time.Time
		sign int
		has  Amount
	}
	var list []change
	for _, s := range u.spans {
		if !s.until.IsZero() && !s.until.After(from) || !until.IsZero() && !s.from.Before(until) {
			continue
		}
		begin := s.from
		if begin.Before(from) {
			begin = from
		}
		list = append(list, change{begin, 1, s.has})
		if !s.until.IsZero() {
			list = append(list, change{s.until, -1, s.has})
		}
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), a.sign-b.sign) }) // what ends goes first
	var now, peak Amount
	for _, c := range list {
		now = now.plus(c.has, c.sign)
		peak.Machines = max(peak.Machines, now.Machines)
		peak.Cores = max(peak.Cores, now.Cores)
		peak.Accelerators = max(peak.Accelerators, now.Accelerators)
	}
	return peak
}

// Hardware is what a machine is made of.
type Hardware struct{ Cores, Accelerators int }

// Of is the hardware of a machine.
func Of(m *muster.Machine) Hardware {
	h := Hardware{Cores: m.Facts.Cores}
	for _, d := range m.Facts.Accelerators {
		h.Accelerators += d.Count
	}
	return h
}

// Add counts a cluster. held are its machines, and promised those that its promise names;
// from is when the period began that bookings count in. What is ended when somebody needs it
// is not counted.
func (u *Usage) Add(c *muster.Cluster, held, promised []Hardware, from, now time.Time) {
	if c.Benchmark || c.Spec.Priority == muster.PriorityScavenger {
		return
	}
	if len(held) > 0 {
		has := amount(held)
		u.Machines, u.Cores, u.Accelerators = u.Machines+has.Machines, u.Cores+has.Cores, u.Accelerators+has.Accelerators
		end := time.Time{}
		switch w := time.Duration(c.Spec.Walltime); { // otherwise nobody knows when it ends
		case c.Expires.After(now):
			end = c.Expires
		case c.Expires.IsZero() && w > 0 && c.Phase != muster.ClusterReady && c.Deadline.After(now):
			end = c.Deadline.Add(w) // its time begins by its deadline
		}
		u.spans = append(u.spans, span{until: end, has: has})
	}
	if p := c.PromiseAhead(); p != nil {
		u.Promises++
		u.book(len(p.Plan.Assign), p.End.Sub(p.Start))
		u.spans = append(u.spans, span{from: p.Start.Add(-time.Duration(p.Lead)), until: p.End, has: amount(promised)})
	}
	if c.UsedBefore > 0 { // before its pauses, as far back as the period goes
		u.book(c.Spec.TotalNodes(), min(time.Duration(c.UsedBefore), max(0, c.Ready.Sub(from))))
	}
	begin, end := c.Ready, now
	switch {
	case begin.IsZero() && c.Phase.HoldsMachines() && len(held) > 0 && c.Spec.Walltime > 0:
		u.book(len(held), time.Duration(c.Spec.Walltime)) // its time begins when it is ready
		return
	case begin.IsZero():
		return
	case !c.Deleted.IsZero():
		end = c.Deleted
	case c.Phase == muster.ClusterPaused || c.Phase == muster.ClusterPausing && !c.KeepsMachines():
		end = c.PhaseSince // a pause is free
	case !c.Expires.IsZero():
		end = c.Expires // what is booked counts until it is given back
	}
	if begin.Before(from) {
		begin = from
	}
	if end.After(begin) {
		u.book(c.Spec.TotalNodes(), end.Sub(begin))
	}
}

// book counts machines for a time; more than can be counted is the most that can.
func (u *Usage) book(machines int, d time.Duration) { u.Booked = add(u.Booked, times(machines, d)) }

// times is machines times how long, at most what a Duration holds.
func times(machines int, d time.Duration) time.Duration {
	if machines <= 0 || d <= 0 {
		return 0
	}
	if int64(d) > math.MaxInt64/int64(machines) {
		return math.MaxInt64
	}
	return time.Duration(machines) * d
}

func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
