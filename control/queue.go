package control

import (
	"context"
	"errors"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/store"
)

// requests records what comes of the requests that wait: see allocate.Requests.
type requests struct{ s *Service }

// Build makes the secrets of a cluster, outside of the writer.
func (r requests) Build(c muster.Cluster, img *muster.Image) (func(*store.Tx, *muster.Cluster, muster.Plan) error, error) {
	if c.Phase == muster.ClusterPaused {
		return func(tx *store.Tx, c *muster.Cluster, plan muster.Plan) error {
			return r.s.resumeOn(tx, c, plan, "machines are free")
		}, nil
	}
	keys, err := newSecrets(parsedRequest{spec: c.Spec, image: img})
	if err != nil {
		return nil, err
	}
	return func(tx *store.Tx, c *muster.Cluster, plan muster.Plan) error {
		if c.Phase == muster.ClusterQueued { // others may have started since Allowed was asked
			if err := r.s.withinLimits(tx, *c, &plan, nil); muster.ReasonOf(err) != muster.ReasonNoRight && err != nil {
				return err
			}
		}
		return r.s.assign(tx, c, img, plan, keys, "machines are free")
	}, nil
}

// Built has work on the cluster begin.
func (r requests) Built(id muster.ClusterID) { r.s.Changed(id) }

// Wait tells the people of a cluster why it waits.
func (r requests) Wait(ctx context.Context, c muster.Cluster, img *muster.Image, a muster.Answer) error {
	s := r.s
	switch {
	case img == nil:
		return s.tell(ctx, c, s.neverNow(s.noImage(c.Spec.Image)))
	case a.Verdict == muster.VerdictNever:
		return s.tell(ctx, c, s.neverNow(admit.Refusal(c.Spec, a)))
	}
	return s.tell(ctx, c, s.waitsForMachines(a))
}

// Missed ends a cluster whose promised time is over before it had machines: the server was
// down, or its machines did not come back.
func (r requests) Missed(ctx context.Context, c muster.Cluster) error {
	s := r.s
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		now, err := tx.Cluster(c.ID)
		if err != nil || now.Phase != c.Phase || now.Promise == nil {
			return err
		}
		was := now.Promise.Start
		now.Promise = nil
		if now.Phase == muster.ClusterPaused {
			return tx.PutCluster(now, "its return at "+admit.Moment(was)+" was missed: its time is over")
		}
		now.Phase, now.PhaseSince = muster.ClusterFailed, s.Clock.Now()
		now.Reason = muster.Errorf(muster.EUnavailable, "its promised time is over: it should have started at %s and had no machines until its end", admit.Moment(was)).
			Because(muster.ReasonPromiseMissed).WithHint("ask for another time")
		return tx.PutCluster(now, now.Reason.Message)
	})
}

// Allowed tells which clusters would exceed a limit if they started now.
func (r requests) Allowed(tx *store.Tx, queued []muster.Cluster) (map[muster.ClusterID]error, error) {
	sys := tx.AsSystem()
	limited := map[string]bool{}
	over := map[muster.ClusterID]error{}
	for _, c := range queued {
		is, known := limited[c.Project]
		if !known {
			var err error
			if _, is, err = rulesOf(sys, c.Project); err != nil {
				return nil, err
			}
			limited[c.Project] = is
		}
		if !is {
			continue
		}
		if err := r.s.withinLimits(tx, c, nil, nil); muster.ReasonOf(err) == muster.ReasonOverLimit {
			over[c.ID] = err
		} else if muster.ReasonOf(err) != muster.ReasonNoRight && err != nil {
			return nil, err
		}
	}
	return over, nil
}

// OverLimit notes that a cluster waits for a limit.
func (r requests) OverLimit(ctx context.Context, c muster.Cluster, why error) error {
	text, hint := why.Error(), "it starts by itself when the limit allows it"
	var e *muster.Error
	if errors.As(why, &e) {
		text = e.Message
	}
	return r.s.tell(ctx, c, muster.Condition{Code: muster.ConditionOverLimit, Text: text, Since: r.s.Clock.Now(), Hint: hint})
}

// Preempt ends clusters that take only what nobody else wants: as at the end of a walltime.
func (r requests) Preempt(ctx context.Context, over []muster.ClusterID, by muster.Cluster) error {
	s := r.s
	for _, id := range over {
		err := s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
			c, err := tx.Cluster(id)
			if err != nil || !c.Ending.IsZero() || c.Phase == muster.ClusterDeleting || c.Phase == muster.ClusterDeleted {
				return err
			}
			now := s.Clock.Now()
			text := "somebody else needs its machines: it ends now, as at the end of its walltime"
			c.Notices = muster.AddNotice(c.Notices, now, muster.NoticePreempted, text)
			frozen := c.Phase == muster.ClusterFrozen || c.Phase == muster.ClusterPausing && c.KeepsMachines()
			if frozen && !c.Expires.IsZero() && !now.Before(c.Expires) {
				return nil // it is going on, to end its jobs
			}
			if c.Phase != muster.ClusterReady && !frozen { // nobody works in it yet
				c.Phase, c.PhaseSince, c.Deadline = muster.ClusterDeleting, now, time.Time{}
			} else {
				c.Expires = now
			}
			return tx.PutCluster(c, text)
		})
		if err != nil {
			return err
		}
		s.Changed(id)
	}
	return nil
}
