package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/internal/plaintext"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// queueWarning is how long before a request that waits is ended its people are told.
const queueWarning = 24 * time.Hour

// deadlines completes what a cluster's people see of its waiting: when the present phase ends
// and how well that is known, until when at the longest, and what happens then. Phases in
// which nothing is waited for have none of it.
func (s *Service) deadlines(out *wire.Cluster, c muster.Cluster) {
	p := s.policy.Load()
	switch c.Phase {
	case muster.ClusterQueued:
		out.ETA, out.ETASpread, out.Deadline = out.StartAt, out.StartSpread, queuedUntil(c, p.MaxQueued)
		out.Next = fmt.Sprintf("the request ends with waited-too-long: nothing waits for more than %s here", plaintext.Span(p.MaxQueued))
		out.ETAUnknown = "what it needs is held by clusters without an end, or is not there"
	case muster.ClusterReserved:
		out.ETA, out.Deadline = c.Promise.Start, c.Promise.End
		out.Next = "its machines are taken " + plaintext.Span(time.Duration(c.Promise.Lead)) + " before its start; if none come until its end, it fails with promise-missed"
	case muster.ClusterBuilding, muster.ClusterValidating:
		if out.Deadline.IsZero() {
			out.Deadline = c.PhaseSince.Add(muster.WaitPrepare)
		}
		out.Next = "nodes that do not come up are started again or moved; at the deadline the cluster fails"
		out.ETAUnknown = "nothing of its class and image was built here yet"
	case muster.ClusterPausing:
		if out.Deadline.IsZero() {
			out.Deadline = c.PhaseSince.Add(muster.WaitLeave)
		}
		out.Next, out.ETAUnknown = "the pause is taken back", "jobs take as long as they take"
		for _, d := range c.Conditions {
			if d.Code == muster.ConditionPausing {
				d = d.WithWaiting()
				out.ETA, out.Next, out.Deadline, out.ETAUnknown = d.ETA, d.Next, d.Deadline, d.ETAUnknown
			}
		}
	case muster.ClusterPaused:
		out.ETA, out.ETASpread = out.StartAt, out.StartSpread
		out.Deadline = pausedUntil(c, *p)
		out.Next = "it is deleted, and its volumes are kept"
		out.ETAUnknown = "it comes back when somebody resumes it"
		if !c.Pause.Resume.IsZero() {
			out.ETAUnknown = "what it needs is held by clusters without an end, or is not there"
		}
	case muster.ClusterFrozen:
		out.Deadline, out.ETA = c.Pause.Stopped.Add(muster.WaitFrozen), c.Pause.Until
		out.Next = "it goes on"
		if !c.Expires.IsZero() && c.Expires.Before(out.Deadline) {
			out.Deadline, out.Next = c.Expires, "it goes on, and its walltime ends"
		}
		out.ETAUnknown = "it goes on when somebody resumes it"
		if !c.Pause.Thawing.IsZero() {
			out.ETAUnknown = "it takes seconds"
		}
	case muster.ClusterDeleting:
		out.Deadline = c.PhaseSince.Add(muster.WaitOff)
		out.Next, out.ETAUnknown = "machines that do not go off are cut off", "nothing was deleted here yet"
	}
	if !out.ETA.IsZero() {
		out.ETAUnknown = ""
	}
	out.Conditions = make([]muster.Condition, len(c.Conditions))
	for i, d := range c.Conditions {
		switch d.Code {
		case waitingForMachines, waitingForMissing, cannotBeServed, muster.ConditionOverLimit, muster.ConditionResuming:
			if c.Phase == muster.ClusterFrozen { // it has its machines
				break
			}
			d.ETA, d.ETASpread, d.Deadline = out.StartAt, out.StartSpread, out.Deadline
		case muster.ConditionPromiseLate, muster.ConditionPauseEnds:
			d.Deadline = out.Deadline
		case muster.ConditionScaling:
			if sc := c.Scaling; sc != nil && !sc.Deadline.IsZero() {
				d.Deadline, d.Next = sc.Deadline, "what has not come is given back, and the cluster goes on with what it has"
			}
		}
		out.Conditions[i] = d.WithWaiting()
	}
	if len(out.Conditions) == 0 {
		out.Conditions = nil
	}
}

// queuedUntil is when a request that waits is ended.
func queuedUntil(c muster.Cluster, most time.Duration) time.Time {
	since := c.Created
	if c.PhaseSince.After(since) {
		since = c.PhaseSince // it lost its promise
	}
	return since.Add(most)
}

// pausedUntil is when a paused cluster is deleted: not while it waits to come back, and was
// promised to.
func pausedUntil(c muster.Cluster, p Policy) time.Time {
	end := c.PhaseSince.Add(p.MaxPause)
	if c.Promise != nil && c.Promise.End.After(end) {
		return c.Promise.End
	}
	if at := c.Pause.Resume; !at.IsZero() && at.Add(p.MaxQueued).After(end) {
		return at.Add(p.MaxQueued)
	}
	return end
}

// tendQueued ends a request that has waited for as long as the site allows, and tells its
// people before. It returns when there is something to do for it next.
func (s *Service) tendQueued(ctx context.Context, c muster.Cluster) (next time.Time, err error) {
	now, most := s.Clock.Now(), s.policy.Load().MaxQueued
	end := queuedUntil(c, most)
	warn := end.Add(-min(queueWarning, most/4))
	change := func(f func(*muster.Cluster) string) error {
		return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
			is, err := tx.Cluster(c.ID)
			if err != nil || is.Phase != muster.ClusterQueued || is.Generation != c.Generation {
				return err
			}
			text := f(&is)
			return tx.PutCluster(is, text)
		})
	}
	warned := slices.ContainsFunc(c.Notices, func(n muster.Notice) bool { return n.Code == muster.NoticeOverdue && !n.At.Before(warn) })
	switch {
	case !now.Before(end):
		return time.Time{}, change(func(c *muster.Cluster) string {
			c.Phase, c.PhaseSince = muster.ClusterFailed, now
			c.Reason = muster.Errorf(muster.EConflict, "it waited for %s, and had no machines", plaintext.Span(most)).Because(muster.ReasonWaitedTooLong).
				WithHint("ask for fewer or other machines, or for a promised time: --start earliest")
			return c.Reason.Message
		})
	case now.Before(warn):
		return warn, nil
	case !warned:
		return end, change(func(c *muster.Cluster) string {
			text := "it waits, and is ended at " + admit.Moment(end) + " if it has no machines until then"
			c.Notices = muster.AddNotice(c.Notices, now, muster.NoticeOverdue, text)
			return text
		})
	}
	return end, nil
}
