package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Resume brings a paused cluster back: at once where there is room, at a promised time, or
// in its turn in the queue. A pause that is planned, or whose jobs still run, is taken back.
func (s *Service) Resume(ctx context.Context, who muster.Actor, ref string, r wire.ResumeRequest) (wire.Resumed, error) {
	var start muster.Start
	if r.Start != "" {
		var err error
		if start, err = spec.ParseStart(r.Start, s.Clock.Now()); err != nil {
			return wire.Resumed{}, err
		}
	}
	var c muster.Cluster
	var out wire.Resumed
	asked := false
	err := s.Store.Update(ctx, who, func(tx *store.Tx) (err error) {
		if c, err = tx.FindCluster(ref); err != nil {
			return err
		}
		if err := tx.MayChange(c); err != nil {
			return err
		}
		out = wire.Resumed{ID: c.ID, Name: c.Name}
		asked = false
		switch {
		case c.Phase == muster.ClusterPaused:
			asked = true
			return nil
		case c.Phase == muster.ClusterFrozen:
			if !start.IsZero() {
				return muster.Errorf(muster.EInvalid, "cluster %s has its machines: it needs no promise of a time", c.Name).Because(muster.ReasonContradiction).WithHint("leave out the start")
			}
			p := *c.Pause
			p.Resume, p.ResumeBy, c.Pause = s.Clock.Now(), who.Name, &p
			out.Text, out.Status = "it goes on where it was", c.Phase
			return tx.PutCluster(c, "resumed by "+who.Name)
		case c.Pause == nil || c.Phase != muster.ClusterReady && c.Phase != muster.ClusterPausing:
			return muster.Errorf(muster.EConflict, "cluster %s is %s: there is no pause to end", c.Name, c.Phase).Because(muster.ReasonWrongPhase).WithHint("see 'muster show %s'", c.ID)
		}
		c.Promise = nil
		switch {
		case c.Phase == muster.ClusterReady:
			out.Text = "its pause is taken back"
			c.Pause = nil
		case c.Pause.Stopped.IsZero():
			out.Text = "its pause is taken back: it goes on"
			if c.Pause.Left > 0 && !c.KeepsMachines() {
				c.Expires = s.Clock.Now().Add(time.Duration(c.Pause.Left))
			}
			c.Phase, c.PhaseSince, c.Pause, c.Conditions = muster.ClusterReady, s.Clock.Now(), nil, nil
		case c.KeepsMachines():
			p := *c.Pause
			p.Resume, p.ResumeBy, c.Pause = s.Clock.Now(), who.Name, &p
			out.Text = "it is being frozen, or hibernates: it goes on after that"
		case c.Pause.OnPause == muster.PauseSave:
			p := *c.Pause
			p.Resume, p.ResumeBy, c.Pause = s.Clock.Now(), who.Name, &p
			out.Text = "it is being saved: it comes back after that"
		default: // its machines are being given back: it comes back after that
			p := *c.Pause
			p.Resume, p.ResumeBy, c.Pause = s.Clock.Now(), who.Name, &p
			out.Text = "its machines are being given back: it comes back after that"
		}
		out.Status = c.Phase
		return tx.PutCluster(c, out.Text+", by "+who.Name)
	})
	if err == nil && asked {
		out, err = s.resumePaused(ctx, who, c, start, out)
	}
	if err != nil {
		return out, err
	}
	s.Changed(c.ID)
	return out, nil
}

// resumePaused asks for machines.
func (s *Service) resumePaused(ctx context.Context, who muster.Actor, c muster.Cluster, start muster.Start, out wire.Resumed) (wire.Resumed, error) {
	need := c.Needs()
	need.Start = start
	if !start.IsZero() && need.Walltime == 0 {
		return out, muster.Errorf(muster.EInvalid, "cluster %s has no end: no time can be promised for it", c.Name).Because(muster.ReasonNoWalltime).WithHint("leave out the start: it comes back as soon as there is room")
	}
	img := s.imageOf(c)
	if img == nil {
		return out, s.noImage(string(c.Image))
	}
	_, err := s.Allocator.Take(ctx, who, allocate.Taking{
		Nodes: need.Nodes,
		Demands: func(*store.Tx) ([]allocate.Demand, error) {
			return []allocate.Demand{{Cluster: c.ID, Purpose: allocate.Resume, Spec: need, Image: img, Alternatives: true}}, nil
		},
		Record: func(tx *store.Tx, _ []allocate.Demand, answers []muster.Answer) error {
			now, err := tx.Cluster(c.ID)
			if err != nil {
				return err
			}
			if now.Phase != muster.ClusterPaused {
				return allocate.Changed()
			}
			out.Answer = answers[0]
			if err := refusal(need, answers[0]); err != nil {
				return err
			}
			p := *now.Pause
			p.Resume, p.ResumeBy, now.Pause, now.Promise = s.Clock.Now(), who.Name, &p, nil
			switch answers[0].Verdict {
			case muster.VerdictNow:
				out.Text = "machines are there: it comes back"
				err = s.resumeOn(tx, &now, *answers[0].Plan, "resumed by "+who.Name)
			case muster.VerdictReserved:
				now.Promise, p.Resume = answers[0].Promise, time.Time{}
				out.Text = "it comes back at " + admit.Moment(now.Promise.Start)
				if err = tx.PutCluster(now, out.Text+", as "+who.Name+" asked"); err == nil {
					err = s.Allocator.Promised(tx, now.ID, *now.Promise)
				}
			default:
				out.Text = "it waits for machines to come back"
				now.Conditions = append(slices.DeleteFunc(slices.Clone(now.Conditions), waits), muster.Condition{
					Code: muster.ConditionResuming, Text: "it waits for machines to come back", Since: s.Clock.Now(), Hint: "it starts by itself when machines are given back", ETA: answers[0].StartAt,
				})
				err = tx.PutCluster(now, "resume asked for by "+who.Name)
			}
			out.Status = now.Phase
			return err
		},
	})
	return out, err
}

// resumeOn gives the machines of a plan to the nodes that a paused cluster had: their names,
// addresses and keys come back. allocate.Stale tells of a plan that no longer holds.
func (s *Service) resumeOn(tx *store.Tx, c *muster.Cluster, plan muster.Plan, text string) error {
	nodes, err := tx.Nodes(c.ID)
	if err != nil {
		return err
	}
	var head []muster.Node
	others := map[muster.Role][]muster.Node{}
	for _, n := range nodes { // by their index
		switch {
		case n.Phase != muster.NodeGone || !slices.Contains(c.Pause.Nodes, n.Name):
		case n.Head:
			head = append(head, n)
		default:
			others[n.Role] = append(others[n.Role], n)
		}
	}
	next := func(a muster.Assignment) (muster.Node, bool) {
		list := others[a.Role]
		if a.Head {
			list = head
		}
		if len(list) == 0 {
			return muster.Node{}, false
		}
		if a.Head {
			head = head[1:]
		} else {
			others[a.Role] = list[1:]
		}
		return list[0], true
	}
	plan.Assign = slices.Clone(plan.Assign)
	back := make([]muster.Node, 0, len(plan.Assign))
	for i := range plan.Assign {
		a := &plan.Assign[i]
		n, ok := next(*a)
		if !ok {
			return muster.Errorf(muster.EInternal, "cluster %s has no node for machine %s", c.ID, a.Machine)
		}
		a.Node, a.Index = n.Name, n.Index
		n.Hold, n.Leave, n.Down = false, false, false
		n.Failures, n.Unconfigured, n.Conditions, n.Stages, n.VM, n.Trust = 0, nil, nil, nil, nil, ""
		n.NotBefore, n.Deadline = time.Time{}, time.Time{}
		back = append(back, n)
	}
	now := s.Clock.Now()
	c.Phase, c.PhaseSince, c.BuildStarted, c.Class, c.Measurement = muster.ClusterBuilding, now, time.Time{}, plan.Class, nil
	c.Deadline, c.Measured, c.Slow = time.Time{}, 0, 0
	c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions), func(d muster.Condition) bool { return waits(d) || d.Code == muster.ConditionPauseEnds })
	if eta, spread, ok := s.estimate(tx.AsSystem(), c.Spec, c.Class, c.Image); ok {
		c.ETA, c.ETASpread = now.Add(eta), muster.Duration(spread)
	}
	if err := tx.PutCluster(*c, text); err != nil {
		return err
	}
	_, err = s.Allocator.Assign(tx, plan, back)
	return err
}

// pauseWarning is how long before its end the people of a paused cluster are told.
const pauseWarning = 7 * 24 * time.Hour

// Tend does what is due for courses and for paused clusters: those that are to be back go into the queue,
// those that are paused for longer than the site allows are deleted, after a warning.
func (r requests) Tend(ctx context.Context) (next time.Time, err error) {
	s := r.s
	var waiting []muster.Cluster
	err = s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		waiting, err = tx.Clusters(store.ClusterFilter{Phases: []muster.ClusterPhase{muster.ClusterPaused, muster.ClusterQueued}})
		return err
	})
	var failed error
	for _, c := range waiting {
		tend := s.tendPaused
		if c.Phase == muster.ClusterQueued {
			tend = s.tendQueued
		}
		at, err := tend(ctx, c)
		failed = errors.Join(failed, err)
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	at, courses := s.tendCourses(ctx)
	if next.IsZero() || !at.IsZero() && at.Before(next) {
		next = at
	}
	return next, errors.Join(err, failed, courses)
}

func (s *Service) tendPaused(ctx context.Context, c muster.Cluster) (next time.Time, err error) {
	now, p := s.Clock.Now(), *c.Pause
	most := s.policy.Load().MaxPause
	end := pausedUntil(c, *s.policy.Load())
	warn := end.Add(-min(pauseWarning, most/2))
	change := func(text string, f func(*muster.Cluster)) error {
		return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
			is, err := tx.Cluster(c.ID)
			if err != nil || is.Phase != muster.ClusterPaused || is.Generation != c.Generation {
				return err
			}
			q := *is.Pause
			is.Pause, is.Conditions = &q, slices.Clone(is.Conditions)
			f(&is)
			return tx.PutCluster(is, text)
		})
	}
	wants := p.Resume.IsZero() && c.Promise == nil && !p.Until.IsZero()
	switch {
	case !now.Before(end):
		return time.Time{}, change("paused for longer than this site allows: it is deleted, and its volumes are kept", func(c *muster.Cluster) {
			c.Phase, c.PhaseSince, c.Promise = muster.ClusterDeleting, now, nil
			if c.Spec.Retain <= 0 {
				c.Spec.Retain = muster.Duration(muster.DefaultRetain)
			}
		})
	case wants && !now.Before(p.Until):
		err = change("its pause is over: it waits for machines to come back", func(c *muster.Cluster) {
			c.Pause.Resume, c.Pause.ResumeBy = now, p.By
			c.Conditions = append(c.Conditions, muster.Condition{Code: muster.ConditionResuming, Text: "it waits for machines to come back", Since: now, Hint: "it starts by itself when machines are given back"})
		})
	case !now.Before(warn) && p.Warned.IsZero():
		text := "it is paused until " + admit.Moment(end) + " at the longest: then it is deleted, and its volumes are kept"
		err = change(text, func(c *muster.Cluster) {
			c.Pause.Warned, c.Deadline = now, end
			c.Conditions = append(c.Conditions, muster.Condition{Code: muster.ConditionPauseEnds, Text: text, Since: now, ETA: end, Hint: "bring it back, or keep what its volumes do not have"})
			c.Notices = muster.AddNotice(c.Notices, now, muster.NoticePause, text)
		})
	case !c.Deadline.Equal(end):
		err = change("", func(c *muster.Cluster) { c.Deadline = end })
	}
	next = end
	if p.Warned.IsZero() && warn.After(now) {
		next = warn
	}
	if wants && p.Until.After(now) && p.Until.Before(next) {
		next = p.Until
	}
	return next, err
}
