package allocate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/store"
)

// Requests records what comes of requests that wait. Which machines they get, and when, is
// decided here; what a cluster with machines is, and what its people read, is not.
type Requests interface {
	// Build prepares that a waiting cluster is built, and returns what records it on the
	// machines of a plan, inside the writer. That takes them by Assign.
	Build(c muster.Cluster, img *muster.Image) (func(*store.Tx, *muster.Cluster, muster.Plan) error, error)
	// Built is called when that is committed. It must not block.
	Built(id muster.ClusterID)
	// Wait notes why a cluster still waits: its image is gone where img is nil, otherwise
	// what was answered.
	Wait(ctx context.Context, c muster.Cluster, img *muster.Image, a muster.Answer) error
	// Allowed tells of clusters that wait and would exceed a limit if they started now.
	Allowed(tx *store.Tx, queued []muster.Cluster) (map[muster.ClusterID]error, error)
	// OverLimit notes that a cluster waits for a limit.
	OverLimit(ctx context.Context, c muster.Cluster, why error) error
	// Preempt ends clusters that take only what nobody else wants, with grace, for another.
	Preempt(ctx context.Context, over []muster.ClusterID, by muster.Cluster) error
	// Tend does what is due for clusters that are paused, and says when to look again.
	Tend(ctx context.Context) (next time.Time, err error)
	// Missed ends a cluster whose promised time is over before it had machines.
	Missed(ctx context.Context, c muster.Cluster) error
}

// Estimate is when a cluster in the queue should start.
type Estimate struct {
	// Position in the queue, from 1.
	Position int
	// Overtaken is how many are ahead of it that came later: their projects used less
	// lately, or somebody raised them.
	Overtaken int
	// StartAt is when its people should be able to log in; zero: no time is known.
	StartAt time.Time
	// Spread is how far off such estimates were lately: the median distance.
	Spread time.Duration
}

// Promote keeps promises whose time has come and gives machines to the clusters that wait,
// in their order, and returns how many it served. It is called when machines may have
// become free, when the calendar has changed, and at Next. A request never takes a machine
// at a time at which the calendar has it for one before it.
func (a *Allocator) Promote(ctx context.Context) (int, error) {
	if a.Requests == nil {
		return 0, nil
	}
	a.promoting.Lock()
	defer a.promoting.Unlock()
	kept, due, failed := a.keepPromises(ctx)
	if ctx.Err() != nil {
		return kept, ctx.Err()
	}
	tend, err := a.Requests.Tend(ctx)
	failed = errors.Join(failed, err)
	served, next, err := a.promoteQueue(ctx)
	for _, at := range []time.Time{due, tend} {
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	a.mu.Lock()
	a.next = next
	a.mu.Unlock()
	return kept + served, errors.Join(failed, err)
}

// Next is when something is due by the calendar, as Promote last saw it: it should be
// called then. Zero: nothing is.
func (a *Allocator) Next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

// Estimate is when a waiting cluster should start, as Promote last saw it. It returns false
// for one that it has not seen yet.
func (a *Allocator) Estimate(id muster.ClusterID) (Estimate, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.estimates[id]
	return e, ok
}

// promoteQueue starts who can start, and computes anew when all others should.
func (a *Allocator) promoteQueue(ctx context.Context) (served int, next time.Time, failed error) {
	var queued []muster.Cluster
	var site *Site
	var list []admit.Scheduled
	over := map[muster.ClusterID]error{}
	all := queued
	err := a.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		if queued, err = tx.Clusters(store.ClusterFilter{Phases: []muster.ClusterPhase{muster.ClusterQueued, muster.ClusterPaused}}); err != nil {
			return err
		}
		queued = slices.DeleteFunc(queued, func(c muster.Cluster) bool { _, waits := c.Waits(); return !waits })
		if len(queued) == 0 {
			return nil
		}
		all = queued
		if over, err = a.Requests.Allowed(tx, queued); err != nil {
			return err
		}
		if len(over) > 0 {
			queued = slices.DeleteFunc(slices.Clone(queued), func(c muster.Cluster) bool { return over[c.ID] != nil })
		}
		if queued, err = a.ordered(tx.AsSystem(), queued); err != nil {
			return err
		}
		if site, err = a.Site(tx, a.Waiting(queued)); err == nil {
			list = site.Schedule()
		}
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	for _, c := range all {
		if why := over[c.ID]; why != nil {
			failed = errors.Join(failed, a.Requests.OverLimit(ctx, c, why))
		}
	}
	estimates := make(map[muster.ClusterID]Estimate, len(list))
	for i, s := range list {
		c := queued[i]
		done, err := false, error(nil)
		if s.Known && !s.Slot.Take.After(site.snap.Now) {
			done, err = a.start(ctx, c, s.Image, s.Slot.Plan)
		} else {
			err = a.wait(ctx, site, c, s)
			if list := site.scavengers(s.Slot.Plan); s.Known && len(list) > 0 && c.Spec.Priority != muster.PriorityScavenger && s.Slot.Take.Sub(site.snap.Now) <= site.turnOf(list)+soon {
				err = errors.Join(err, a.Requests.Preempt(ctx, list, c))
			}
		}
		if ctx.Err() != nil {
			return served, time.Time{}, ctx.Err()
		}
		if err != nil {
			// One request that cannot be served must not hold up the others.
			a.Log.Warn("scheduling queued cluster failed", "cluster", c.ID, "error", err)
			failed = errors.Join(failed, err)
		}
		if done {
			served++
			a.Requests.Built(c.ID)
			continue
		}
		e := Estimate{Position: len(estimates) + 1}
		for j := range i {
			came, _ := queued[j].Waits()
			if since, _ := c.Waits(); came.After(since) {
				if _, waits := estimates[queued[j].ID]; waits {
					e.Overtaken++
				}
			}
		}
		if s.Known {
			e.StartAt, e.Spread = s.Slot.Start, site.snap.Spread
			if _, told := a.first[c.ID]; !told {
				a.first[c.ID] = s.Slot.Take
			}
			if next.IsZero() || s.Slot.Take.Before(next) {
				next = s.Slot.Take
			}
		}
		estimates[c.ID] = e
	}
	a.mu.Lock()
	a.estimates = estimates
	a.mu.Unlock()
	maps.DeleteFunc(a.first, func(id muster.ClusterID, _ time.Time) bool { _, waits := estimates[id]; return !waits })
	return served, next, failed
}

// wait tells the people of a cluster why it waits, where they do not know yet.
func (a *Allocator) wait(ctx context.Context, site *Site, c muster.Cluster, s admit.Scheduled) error {
	if s.Known && muster.HasCondition(c.Conditions, muster.ConditionWaitingForMachines, muster.ConditionResuming) {
		return nil
	}
	if s.Image == nil {
		return a.Requests.Wait(ctx, c, nil, muster.Answer{})
	}
	snap := site.snap
	snap.Times, snap.Ahead = nil, nil
	answer := admit.Answer(c.ID, s.Spec, s.Image, snap, site.placer)
	if answer.Verdict == muster.VerdictNow { // others have the machines
		answer.Verdict, answer.Plan = muster.VerdictQueued, nil
	}
	return a.Requests.Wait(ctx, c, s.Image, answer)
}

// start gives the machines of a plan to a cluster that waits, and reports whether it got
// them.
func (a *Allocator) start(ctx context.Context, c muster.Cluster, img *muster.Image, plan muster.Plan) (done bool, err error) {
	build, err := a.Requests.Build(c, img)
	if err != nil {
		return false, err
	}
	_, err = a.Take(ctx, muster.System(), Taking{
		Nodes: len(plan.Assign), Once: true,
		Demands: func(*store.Tx) ([]Demand, error) { return nil, nil },
		Record: func(tx *store.Tx, _ []Demand, _ []muster.Answer) error {
			now, err := tx.Cluster(c.ID)
			if done = err == nil && now.Phase == c.Phase && now.Generation == c.Generation; !done {
				return err // deleted or changed meanwhile
			}
			if err := build(tx, &now, plan); err != nil {
				return err
			}
			if first, ok := a.first[c.ID]; ok {
				return tx.AsSystem().PutDuration(StartErrorDuration, "", "", a.Clock.Now().Sub(first).Abs())
			}
			return nil
		},
	})
	if Stale(err) {
		return false, nil // somebody was faster; the next promotion tries again
	}
	if muster.ReasonOf(err) == muster.ReasonOverLimit {
		return false, a.Requests.OverLimit(ctx, c, err)
	}
	return done && err == nil, err
}
