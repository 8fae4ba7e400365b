package allocate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/calendar"
	"github.com/muster-hpc/muster/store"
)

// A promise binds its time, not its machines: where one of them is in the way of something
// that would fit otherwise, promises move to other machines, at the same times. The search is
// bounded, and goes from the present assignment in one order: the same site gives the same.
const (
	// nearPromise is how long before its machines are taken a promise keeps them.
	nearPromise = time.Minute
	// mostMoves is how many promises move for one thing that needs room.
	mostMoves = 16
	// mostTries is how many others are tried to be moved to make room for one that has to.
	mostTries = 8
	// mostAhead is beside how many requests that wait promises move: each of them has to be
	// looked at, for what comes free may be taken by one and delay another.
	mostAhead = 200
)

// movable are the promises whose machines may still be exchanged, in order of their times.
func (s *Site) movable() []*muster.Cluster {
	var list []*muster.Cluster
	for _, c := range s.clusters {
		p := c.PromiseAhead()
		if p == nil {
			continue
		}
		if take, _ := s.promised(p); take.Sub(s.snap.Now) > nearPromise {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(x, y *muster.Cluster) int {
		return cmp.Or(x.Promise.Start.Compare(y.Promise.Start), cmp.Compare(x.ID, y.ID))
	})
	return list
}

// without is the calendar without some promises, and with the places of those that wait.
func (s *Site) without(list []*muster.Cluster) *calendar.Timetable {
	t := s.bindingWithout(list)
	for _, w := range s.scheduled {
		if w.Known {
			t.Take(w.Slot.Plan, w.Slot.Take, w.Slot.Give)
		}
	}
	return t
}

// bindingWithout is what binds, without some promises.
func (s *Site) bindingWithout(list []*muster.Cluster) *calendar.Timetable {
	rest := *s
	rest.clusters = maps.Clone(s.clusters)
	for _, c := range list {
		bare := *c
		bare.Promise = nil
		rest.clusters[c.ID] = &bare
	}
	return rest.timetable(s.windows)
}

// delays reports whether one that waits would start later once a plan has its machines and
// promises have moved: what they leave may be taken by another one that waits.
func (s *Site) delays(plan muster.Plan, take, give time.Time, movable []*muster.Cluster, moves []muster.Move) bool {
	if len(s.scheduled) == 0 {
		return false
	}
	t := s.bindingWithout(movable)
	t.Take(plan, take, give)
	for _, c := range movable {
		p := *c.Promise
		if i := slices.IndexFunc(moves, func(m muster.Move) bool { return m.Cluster == c.ID }); i >= 0 {
			p.Plan, p.Lead = moves[i].Plan, moves[i].Lead
		}
		from, to := s.promised(&p)
		t.Take(p.Plan, from, to)
	}
	snap := s.snap
	snap.Times = t
	for i, now := range admit.Schedule(snap, s.ahead, s.placer) {
		if was := s.scheduled[i]; was.Known && (!now.Known || now.Slot.Start.After(was.Slot.Start)) {
			return true
		}
	}
	return false
}

// exchanged answers a demand once more, where promises could move out of its way.
func (s *Site) exchanged(d Demand, was muster.Answer, ask func(admit.Snapshot) muster.Answer, snap admit.Snapshot) muster.Answer {
	if was.Verdict == muster.VerdictNow || was.Verdict == muster.VerdictNever || was.Verdict == muster.VerdictReserved && !d.Spec.Start.Earliest {
		return was
	}
	movable := slices.DeleteFunc(s.movable(), func(c *muster.Cluster) bool { return c.ID == d.Cluster })
	if len(movable) == 0 || len(s.scheduled) > mostAhead {
		return was
	}
	bare := s.without(movable)
	snap.Times, snap.Alternatives = bare, false
	answer := ask(snap)
	take, give := s.snap.Now, time.Time{}
	switch {
	case d.Spec.Start.IsZero() && answer.Verdict == muster.VerdictNow && answer.Plan != nil:
		if d.Spec.Walltime > 0 {
			lead, turn := s.turnover.of(answer.Plan.Class)
			give = take.Add(lead + time.Duration(d.Spec.Walltime) + turn)
		}
	case answer.Verdict == muster.VerdictReserved && answer.Promise != nil &&
		(was.Verdict != muster.VerdictReserved || answer.Promise.Start.Before(was.Promise.Start)):
		take, give = s.promised(answer.Promise)
	default:
		return was
	}
	moves, ok := s.rehouse(bare, *answer.Plan, take, give, movable)
	if !ok || s.delays(*answer.Plan, take, give, movable, moves) {
		return was
	}
	answer.Moves = moves
	return answer
}

// rehouse finds places for promises once the machines of a plan are taken, in bare, which has
// none of them. It returns those that move; false when there is no room for all.
func (s *Site) rehouse(bare *calendar.Timetable, plan muster.Plan, take, give time.Time, movable []*muster.Cluster) ([]muster.Move, bool) {
	begin := func(leave *muster.Cluster) (t *calendar.Timetable, out []*muster.Cluster) {
		t = bare.Clone()
		t.Take(plan, take, give)
		for _, c := range movable {
			from, to := s.promised(c.Promise)
			if c == leave || !t.Holds(c.Promise.Plan, from, to) {
				out = append(out, c)
				continue
			}
			t.Take(c.Promise.Plan, from, to)
		}
		return t, out
	}
	t, out := begin(nil)
	if len(out) > mostMoves {
		return nil, false
	}
	moves, stuck := s.placeAll(t, out)
	if stuck == nil {
		return moves, true
	}
	// One more moves to make room for the one that found none.
	from, to := s.promised(stuck.Promise)
	tries := 0
	for _, c := range movable {
		begins, ends := s.promised(c.Promise)
		if slices.Contains(out, c) || !begins.Before(to) || !from.Before(ends) {
			continue
		}
		if tries++; tries > mostTries {
			break
		}
		t, again := begin(c)
		again = append(slices.DeleteFunc(again, func(x *muster.Cluster) bool { return x == c }), c) // it chooses last
		if moves, stuck := s.placeAll(t, again); stuck == nil {
			return moves, true
		}
	}
	return nil, false
}

// placeAll finds machines for promises at their times, one after the other, and returns the
// first for which there are none.
func (s *Site) placeAll(t *calendar.Timetable, list []*muster.Cluster) (moves []muster.Move, stuck *muster.Cluster) {
	for _, c := range list {
		slot, ok := s.placeAt(t, c)
		if !ok {
			return nil, c
		}
		moves = append(moves, muster.Move{Cluster: c.ID, Start: c.Promise.Start, Was: c.Promise.Plan, Plan: slot.Plan, Lead: muster.Duration(slot.Start.Sub(slot.Take))})
	}
	return moves, nil
}

// placeAt finds machines for a promise at its time, and enters it.
func (s *Site) placeAt(t *calendar.Timetable, c *muster.Cluster) (calendar.Slot, bool) {
	spec, p := c.Needs(), c.Promise
	spec.Walltime = muster.Duration(p.End.Sub(p.Start))
	spec.Start = muster.Start{After: p.Start, Before: p.Start}
	snap := s.snap
	snap.Times = t
	list := admit.Schedule(snap, []admit.Waiting{{Cluster: c.ID, Spec: spec, Image: s.image(c)}}, s.placer)
	return list[0].Slot, list[0].Known && len(list[0].Slot.Plan.Assign) >= len(p.Plan.Assign)
}

// image is what a cluster runs; nil: it is not there.
func (s *Site) image(c *muster.Cluster) *muster.Image {
	ref := c.Spec.Image
	if c.Image != "" {
		ref = string(c.Image)
	}
	img, err := s.images.Resolve(ref)
	if err != nil {
		return nil
	}
	return img
}

// move records that promises have other machines. It is stale when one of them changed since.
func (a *Allocator) move(tx *store.Tx, moves []muster.Move) error {
	sys := tx.AsSystem()
	var moved []muster.Cluster
	for _, m := range moves {
		c, err := sys.Cluster(m.Cluster)
		if muster.CodeOf(err) == muster.ENotFound {
			return staleTimes("cluster %s is gone", m.Cluster)
		}
		if err != nil {
			return err
		}
		p := c.PromiseAhead()
		if p == nil || !p.Start.Equal(m.Start) || !slices.Equal(p.Plan.Assign, m.Was.Assign) {
			return staleTimes("the promise of cluster %s changed", c.Name)
		}
		next := *p
		next.Plan, next.Lead = m.Plan, m.Lead
		c.Promise = &next
		if err := sys.PutCluster(c, fmt.Sprintf("the machines of its promise were exchanged: %d of %d are other ones", others(m.Was, m.Plan), len(m.Plan.Assign))); err != nil {
			return err
		}
		moved = append(moved, c)
	}
	for _, c := range moved { // together: they may have changed places
		if err := a.Promised(tx, c.ID, *c.Promise); err != nil {
			return err
		}
	}
	return nil
}

// others counts the machines of a plan that another one does not have.
func others(was, now muster.Plan) (n int) {
	had := make(map[muster.MachineID]bool, len(was.Assign))
	for _, a := range was.Assign {
		had[a.Machine] = true
	}
	for _, a := range now.Assign {
		if !had[a.Machine] {
			n++
		}
	}
	return n
}

// MakeRoom moves promises off the machines of a cluster, which keeps them until a time. It
// reports whether there was room for all of them elsewhere.
func (a *Allocator) MakeRoom(tx *store.Tx, c muster.Cluster, until time.Time) (bool, error) {
	sys := tx.AsSystem()
	site, err := a.Site(sys, nil)
	if err != nil {
		return false, err
	}
	held, err := sys.Machines(store.MachineFilter{Cluster: c.ID})
	if err != nil {
		return false, err
	}
	var plan muster.Plan
	has := make(map[muster.MachineID]bool, len(held))
	for _, m := range held {
		plan.Assign = append(plan.Assign, muster.Assignment{Machine: m.ID})
		has[m.ID] = true
	}
	_, turn := site.turnover.of(c.Class)
	give := until.Add(turn)
	movable := slices.DeleteFunc(site.movable(), func(x *muster.Cluster) bool { return x.ID == c.ID })
	may := make(map[muster.ClusterID]bool, len(movable))
	for _, x := range movable {
		may[x.ID] = true
	}
	for _, x := range site.clusters {
		p := x.PromiseAhead()
		if p == nil || may[x.ID] || x.ID == c.ID {
			continue
		}
		if take, _ := site.promised(p); take.Before(give) && slices.ContainsFunc(p.Plan.Assign, func(as muster.Assignment) bool { return has[as.Machine] }) {
			return false, nil // it is too near to be moved
		}
	}
	site.Schedule()
	if len(site.scheduled) > mostAhead {
		return false, nil
	}
	moves, ok := site.rehouse(site.without(movable), plan, site.snap.Now, give, movable)
	if !ok {
		return false, nil
	}
	return true, a.move(tx, moves)
}

// elsewhereWithMoves is a place for a promise at its time for which others move.
func (s *Site) elsewhereWithMoves(c muster.Cluster) (calendar.Slot, []muster.Move, bool) {
	movable := slices.DeleteFunc(s.movable(), func(x *muster.Cluster) bool { return x.ID == c.ID })
	own := s.clusters[c.ID]
	if own == nil || own.Promise == nil {
		return calendar.Slot{}, nil, false
	}
	s.Schedule()
	bare := s.without(append(slices.Clone(movable), own))
	slot, ok := s.placeAt(bare.Clone(), own)
	if !ok {
		return slot, nil, false
	}
	moves, ok := s.rehouse(bare, slot.Plan, slot.Take, slot.Give, movable)
	return slot, moves, ok
}
