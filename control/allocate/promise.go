package allocate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/calendar"
	"github.com/muster-hpc/muster/store"
)

// Promised makes certain, inside the writer, that a promise can be kept as far as is known
// now. Stale reports whether the error is that the calendar has changed meanwhile.
func (a *Allocator) Promised(tx *store.Tx, id muster.ClusterID, p muster.Promise) error {
	sys := tx.AsSystem()
	s, err := a.times(sys)
	if err != nil {
		return err
	}
	take, give := s.promised(&p)
	for _, as := range p.Plan.Assign {
		m, err := sys.Machine(as.Machine)
		if muster.CodeOf(err) == muster.ENotFound {
			return staleTimes("machine %s is gone", as.Machine)
		}
		if err != nil {
			return err
		}
		if m.Cluster == "" || m.Cluster == id {
			continue
		}
		if c := s.clusters[m.Cluster]; c != nil {
			if at := s.gives(c); at.IsZero() || at.After(take) {
				return staleTimes("machine %s is not free in time", as.Machine)
			}
		}
	}
	return s.apart(p.Plan, id, take, give)
}

// verifyTimes makes certain that the cluster of a plan, as it is recorded now, is in the
// way of no promise.
func (a *Allocator) verifyTimes(sys *store.Tx, plan muster.Plan, id muster.ClusterID, now time.Time) error {
	s, err := a.times(sys)
	if err != nil {
		return err
	}
	c := s.clusters[id]
	if c == nil || c.Benchmark {
		return nil
	}
	return s.apart(plan, id, now, s.gives(c))
}

// LatestEnd is until when a cluster can keep its machines without being in the way of a
// promise, and when it ends as far as is known now. It returns false when nothing bounds it.
func (a *Allocator) LatestEnd(tx *store.Tx, c muster.Cluster) (latest, ends time.Time, bound bool, err error) {
	sys := tx.AsSystem()
	s, err := a.times(sys)
	if err != nil {
		return latest, ends, false, err
	}
	held, err := sys.Machines(store.MachineFilter{Cluster: c.ID})
	if err != nil {
		return latest, ends, false, err
	}
	has := make(map[muster.MachineID]bool, len(held))
	for _, m := range held {
		has[m.ID] = true
	}
	_, turn := s.turnover.of(c.Class)
	var first time.Time
	for _, other := range s.clusters {
		if p := other.PromiseAhead(); p != nil && other.ID != c.ID && slices.ContainsFunc(p.Plan.Assign, func(as muster.Assignment) bool { return has[as.Machine] }) {
			take, _ := s.promised(p)
			if end := take.Add(-turn); first.IsZero() || end.Before(first) {
				first = end
			}
		}
	}
	if ends = c.Expires; ends.IsZero() { // it is being built
		if ends = s.gives(&c); !ends.IsZero() {
			ends = ends.Add(-turn)
		}
	}
	return first, ends, !first.IsZero() && !ends.IsZero(), nil
}

// times is what a Site knows of times, without its machines.
func (a *Allocator) times(sys *store.Tx) (*Site, error) {
	living, err := sys.Clusters(store.ClusterFilter{Living: true})
	if err != nil {
		return nil, err
	}
	parts := a.parts.Load()
	if parts == nil { // nobody asked since this server started
		machines, err := sys.Site()
		if err != nil {
			return nil, err
		}
		of := partsOf(machines, a.Providers)
		parts = &of
		a.parts.Store(parts)
	}
	s := &Site{clusters: make(map[muster.ClusterID]*muster.Cluster, len(living)), turnover: newTurnover(sys, *parts)}
	s.snap.Now = a.Clock.Now()
	for i := range living {
		s.clusters[living[i].ID] = &living[i]
	}
	return s, nil
}

// apart makes certain that no promise of another cluster has one of the machines of a plan
// from a time until another (zero: for good).
func (s *Site) apart(plan muster.Plan, id muster.ClusterID, from, until time.Time) error {
	var has map[muster.MachineID]bool
	for _, c := range s.clusters {
		p := c.PromiseAhead()
		if p == nil || c.ID == id {
			continue
		}
		take, give := s.promised(p)
		if !give.After(from) || !until.IsZero() && !take.Before(until) {
			continue
		}
		if has == nil {
			has = make(map[muster.MachineID]bool, len(plan.Assign))
			for _, as := range plan.Assign {
				has[as.Machine] = true
			}
		}
		for _, as := range p.Plan.Assign {
			if has[as.Machine] {
				return staleTimes("machine %s is promised to another cluster by then", as.Machine)
			}
		}
	}
	return nil
}

func staleTimes(format string, args ...any) error {
	return staleError{muster.Errorf(muster.EConflict, format, args...).Because(muster.ReasonPlanStale).
		WithHint("the calendar changed while the request was answered: ask again")}
}

// keepPromises gives their machines to clusters whose time has come, and finds others for
// promises that lost some. It returns how many were served and when the next is due.
func (a *Allocator) keepPromises(ctx context.Context) (served int, next time.Time, failed error) {
	var promised []muster.Cluster
	var site *Site
	err := a.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		living, err := tx.Clusters(store.ClusterFilter{Living: true})
		if err != nil {
			return err
		}
		var specs []muster.Spec
		for _, c := range living {
			if c.PromiseAhead() != nil {
				promised, specs = append(promised, c), append(specs, c.Spec)
			}
		}
		if len(promised) > 0 {
			site, err = a.Site(tx, []admit.Waiting{}, specs...)
		}
		return err
	})
	if err != nil || len(promised) == 0 {
		return 0, time.Time{}, err
	}
	// In the order of their times: who is due first chooses first.
	slices.SortStableFunc(promised, func(x, y muster.Cluster) int { return x.Promise.Start.Compare(y.Promise.Start) })
	images := a.Waiting(promised)
	for i, c := range promised {
		done, again, err := a.keepPromise(ctx, site, c, images[i].Image)
		if ctx.Err() != nil {
			return served, time.Time{}, ctx.Err()
		}
		if err != nil {
			a.Log.Warn("keeping promise failed", "cluster", c.ID, "error", err)
			failed = errors.Join(failed, err)
		}
		if done {
			served++
			a.Requests.Built(c.ID)
		}
		if !again.IsZero() && (next.IsZero() || again.Before(next)) {
			next = again
		}
	}
	return served, next, failed
}

// keepPromise does what is due for one promise, and says when to look again.
func (a *Allocator) keepPromise(ctx context.Context, site *Site, c muster.Cluster, img *muster.Image) (done bool, again time.Time, err error) {
	p, now := c.Promise, site.snap.Now
	take, _ := site.promised(p)
	switch {
	case !now.Before(p.End):
		return false, time.Time{}, a.Requests.Missed(ctx, c)
	case img == nil:
		return false, now.Add(soon), a.Requests.Wait(ctx, c, nil, muster.Answer{})
	case now.Before(take), c.Phase.HoldsMachines():
		if list := site.scavengers(p.Plan); len(list) > 0 {
			end := take.Add(-site.turnOf(list))
			if !now.Before(end) {
				return false, now.Add(soon), a.Requests.Preempt(ctx, list, c)
			}
			take = end
		}
		if again = take; !again.After(now) {
			again = now.Add(soon)
		}
		if lost := site.lost(p); len(lost) > 0 {
			return false, again, a.replan(ctx, site, c, img, lost)
		}
		if text, next := a.avoid(site, c, img); next != nil {
			site.clusters[c.ID].Promise = next
			return false, again, a.tellPromise(ctx, c, nil, func(now *muster.Cluster) string {
				now.Promise = next
				return text
			})
		}
		if over := site.overrunning(p); len(over) > 0 {
			return false, again, a.makeWay(ctx, site, c, over)
		}
		return false, again, nil
	case site.allFree(p.Plan):
		if done, err = a.start(ctx, c, img, p.Plan); !done {
			again = now.Add(soon)
		}
		return done, again, err
	}
	// It is due, and not all of its machines are there: any that are free will do.
	late := c
	late.Spec.Walltime = muster.Duration(max(time.Second, p.End.Sub(now)-time.Duration(p.Lead)))
	late.Spec.Start = muster.Start{}
	if slot, ok := site.elsewhere(late, img); ok && !slot.Take.After(now) {
		if done, err = a.start(ctx, c, img, slot.Plan); done || err != nil {
			return done, now.Add(soon), err
		}
	}
	if now.After(p.Start) && !muster.HasCondition(c.Conditions, muster.ConditionPromiseLate) {
		err = a.tellPromise(ctx, c, nil, func(c *muster.Cluster) string {
			text := "it should have started at " + admit.Moment(p.Start) + ": its machines are not there yet"
			c.Conditions = append(c.Conditions, muster.Condition{Code: muster.ConditionPromiseLate, Text: text, Since: now, Hint: "it starts as soon as they are, or others; its end stays " + admit.Moment(p.End)})
			return text
		})
	}
	return false, now.Add(soon), err
}

// lost are the machines of a promise that will not come back by themselves, or are in
// maintenance at its time.
func (s *Site) lost(p *muster.Promise) (list []muster.MachineID) {
	take, give := s.promised(p)
	kept := map[muster.MachineID]bool{}
	for _, w := range s.windows {
		if give.After(w.From) && (w.Until.IsZero() || take.Before(w.Until)) {
			for _, id := range w.Machines {
				kept[id] = true
			}
		}
	}
	for _, as := range p.Plan.Assign {
		j, ok := s.snap.Times.Place(as.Machine, len(s.snap.Machines))
		if !ok || kept[as.Machine] || gone(&s.snap.Machines[j]) {
			list = append(list, as.Machine)
		}
	}
	return list
}

// overrunning are the ready clusters that have machines of a promise for longer than until
// they are needed: they were ready later than was planned when they got them.
func (s *Site) overrunning(p *muster.Promise) (list []muster.Cluster) {
	take, _ := s.promised(p)
	for _, as := range p.Plan.Assign {
		j, ok := s.snap.Times.Place(as.Machine, len(s.snap.Machines))
		if !ok {
			continue
		}
		c := s.clusters[s.snap.Machines[j].Cluster]
		if c == nil || c.Phase != muster.ClusterReady && c.Phase != muster.ClusterFrozen || c.Expires.IsZero() || !c.Ending.IsZero() || c.Spec.Priority == muster.PriorityScavenger {
			continue
		}
		if s.gives(c).After(take) && !slices.ContainsFunc(list, func(x muster.Cluster) bool { return x.ID == c.ID }) {
			list = append(list, *c)
		}
	}
	return list
}

// makeWay gives a promise other machines where clusters have its own for too long, or else
// has these clusters end in time: the start of a promise does not move for them.
func (a *Allocator) makeWay(ctx context.Context, site *Site, c muster.Cluster, over []muster.Cluster) error {
	if slot, moves, ok := site.elsewhereWithMoves(c); ok {
		own := muster.Move{Cluster: c.ID, Start: c.Promise.Start, Was: c.Promise.Plan, Plan: slot.Plan, Lead: muster.Duration(slot.Start.Sub(slot.Take))}
		err := a.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return a.move(tx, append(slices.Clone(moves), own)) })
		if !Stale(err) {
			return err
		}
	}
	take, _ := site.promised(c.Promise)
	for _, o := range over {
		_, turn := site.turnover.of(o.Class)
		end := take.Add(-turn)
		if least := site.snap.Now.Add(time.Minute); end.Before(least) {
			end = least // its jobs are told to end
		}
		if !end.Before(o.Expires) {
			continue
		}
		err := a.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
			now, err := tx.Cluster(o.ID)
			if err != nil || now.Phase != o.Phase || now.Generation != o.Generation || !now.Expires.Equal(o.Expires) {
				return err
			}
			text := fmt.Sprintf("it ends at %s instead of %s: it was ready later than planned, and its machines are promised to others", admit.Moment(end), admit.Moment(o.Expires))
			now.Expires = end
			now.Notices = muster.AddNotice(now.Notices, site.snap.Now, muster.NoticeWalltime, text)
			return tx.PutCluster(now, text)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func gone(m *muster.Machine) bool {
	switch m.Phase {
	case muster.MachineMaintenance, muster.MachineQuarantined, muster.MachineRetired:
		return true
	}
	return m.Intent != muster.IntentNone
}

// allFree reports whether all machines of a plan can be taken now.
func (s *Site) allFree(plan muster.Plan) bool {
	for _, as := range plan.Assign {
		j, ok := s.snap.Times.Place(as.Machine, len(s.snap.Machines))
		if !ok {
			return false
		}
		if m := &s.snap.Machines[j]; m.Phase != muster.MachineFree || m.Cluster != "" || gone(m) {
			return false
		}
	}
	return len(plan.Assign) > 0
}

// elsewhere is the first place in the calendar for a cluster were its own promise not there.
func (s *Site) elsewhere(c muster.Cluster, img *muster.Image) (calendar.Slot, bool) {
	snap := s.snap
	without := *s
	without.clusters = maps.Clone(s.clusters)
	own := c
	own.Promise = nil
	without.clusters[c.ID] = &own
	snap.Times = without.timetable(s.windows)
	spec := c.Spec
	list := admit.Schedule(snap, []admit.Waiting{{Cluster: c.ID, Spec: spec, Image: img}}, s.placer)
	return list[0].Slot, list[0].Known
}

// replan finds other machines for a promise that lost some: at its time, or else at the
// first one after it, of which its people are told at once.
func (a *Allocator) replan(ctx context.Context, site *Site, c muster.Cluster, img *muster.Image, lost []muster.MachineID) error {
	p := *c.Promise
	c.Spec.Walltime = muster.Duration(p.End.Sub(p.Start))
	c.Spec.Start = muster.Start{After: p.Start, Before: p.Start}
	slot, ok := site.elsewhere(c, img)
	var moves []muster.Move
	if !ok { // others may move out of its way
		slot, moves, ok = site.elsewhereWithMoves(c)
	}
	if !ok {
		c.Spec.Start.Before = time.Time{}
		slot, ok = site.elsewhere(c, img)
	}
	err := a.tellPromise(ctx, c, moves, func(now *muster.Cluster) string {
		if !ok {
			now.Promise, now.Spec.Start = nil, muster.Start{}
			if now.Phase == muster.ClusterReserved {
				now.Phase, now.PhaseSince = muster.ClusterQueued, site.snap.Now
			}
			text := fmt.Sprintf("its promise cannot be kept: machine %s is lost, and no other is known to come free; it waits in the queue", lost[0])
			now.Notices = muster.AddNotice(now.Notices, site.snap.Now, muster.NoticePromise, text)
			return text
		}
		moved := now.Promise.Moved
		next := &muster.Promise{Start: slot.Start, End: slot.End, Lead: muster.Duration(slot.Start.Sub(slot.Take)), Plan: slot.Plan, First: now.Promise.First, Moved: moved}
		was := now.Promise.Start
		now.Promise = next
		if slot.Start.Equal(was) {
			return "machine " + string(lost[0]) + " is lost: another takes its place in the promise"
		}
		if next.Moved++; next.First.IsZero() {
			next.First = was
		}
		text := fmt.Sprintf("machine %s is lost: it starts at %s instead of %s", lost[0], admit.Moment(slot.Start), admit.Moment(was))
		now.Notices = muster.AddNotice(now.Notices, site.snap.Now, muster.NoticePromise, text)
		return text
	})
	if err == nil {
		// Others that lost machines are planned beside this one.
		if ok {
			site.clusters[c.ID].Promise = &muster.Promise{Start: slot.Start, End: slot.End, Lead: muster.Duration(slot.Start.Sub(slot.Take)), Plan: slot.Plan}
		} else {
			site.clusters[c.ID].Promise = nil
		}
		for _, m := range moves {
			next := *site.clusters[m.Cluster].Promise
			next.Plan, next.Lead = m.Plan, m.Lead
			site.clusters[m.Cluster].Promise = &next
		}
	}
	return err
}

// tellPromise changes a cluster that has a promise, if it still is what it was.
func (a *Allocator) tellPromise(ctx context.Context, c muster.Cluster, moves []muster.Move, change func(*muster.Cluster) string) error {
	return a.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		now, err := tx.Cluster(c.ID)
		if err != nil || now.Phase != c.Phase || now.Generation != c.Generation || now.Promise == nil {
			return err
		}
		if err := a.move(tx, moves); err != nil {
			if Stale(err) {
				return nil // the next promotion tries again
			}
			return err
		}
		now.Conditions = slices.Clone(now.Conditions)
		text := change(&now)
		if now.Promise != nil {
			if err := a.Promised(tx, now.ID, *now.Promise); err != nil {
				if Stale(err) {
					return nil // the next promotion tries again
				}
				return err
			}
		}
		return tx.PutCluster(now, text)
	})
}
