package control

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/allocate"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Change changes when a cluster starts, how long it lasts or how many nodes it has, before
// it has started. Where that cannot be, nothing has changed, and the answer names the nearest
// time that can be promised.
func (s *Service) Change(ctx context.Context, who muster.Actor, ref string, r wire.ChangeRequest) (wire.Changed, error) {
	var out wire.Changed
	raise, err := s.readRaise(who, r)
	if err != nil {
		return out, err
	}
	var c muster.Cluster
	var need muster.Spec
	_, err = s.Allocator.Take(ctx, who, allocate.Taking{
		Demands: func(tx *store.Tx) ([]allocate.Demand, error) {
			var err error
			if c, err = tx.FindCluster(ref); err != nil {
				return nil, err
			}
			if err := tx.MayChange(c); err != nil {
				return nil, err
			}
			if c.Phase != muster.ClusterQueued && c.Phase != muster.ClusterReserved {
				return nil, muster.Errorf(muster.EConflict, "cluster %s is %s: it has started already", c.Name, c.Phase).Because(muster.ReasonWrongPhase).
					WithHint("`muster extend` gives it more time, `muster scale` more nodes")
			}
			if need, err = s.changed(c, r); err != nil {
				return nil, err
			}
			as := c
			as.Spec, as.Promise, as.Phase = need, nil, muster.ClusterQueued
			return []allocate.Demand{{Cluster: c.ID, Purpose: allocate.Create, Spec: need, Image: s.imageOf(c), As: &as, Alternatives: true}}, nil
		},
		Record: func(tx *store.Tx, _ []allocate.Demand, answers []muster.Answer) error {
			now, err := tx.Cluster(c.ID)
			if err != nil {
				return err
			}
			if now.Generation != c.Generation || now.Phase != c.Phase {
				return allocate.Changed()
			}
			out = wire.Changed{ID: c.ID, Name: c.Name, Answer: answers[0]}
			if err := refusal(need, answers[0]); err != nil {
				return err
			}
			now.Spec, now.Generation, now.Promise = need, now.Generation+1, nil
			now.Raised += muster.Duration(raise)
			text := "changed by " + who.Name
			if raise > 0 {
				text = fmt.Sprintf("raised by %s: it counts as having waited %s longer", who.Name, spec.FormatDuration(raise))
			}
			now.Phase, now.PhaseSince = muster.ClusterQueued, c.PhaseSince
			if answers[0].Verdict == muster.VerdictReserved {
				now.Phase, now.Promise, now.Class = muster.ClusterReserved, answers[0].Promise, answers[0].Plan.Class
			}
			if now.Phase != c.Phase {
				now.PhaseSince, now.Conditions = s.Clock.Now(), nil
			}
			out.Status = now.Phase
			if err := s.withinLimits(tx, now, answers[0].Plan, nil); err != nil {
				return err
			}
			if err := tx.PutCluster(now, text); err != nil || now.Promise == nil {
				return err
			}
			return s.Allocator.Promised(tx, now.ID, *now.Promise)
		},
	})
	if err != nil {
		return out, err
	}
	s.Changed(c.ID)
	return out, nil
}

// readRaise is how much a request is raised in the queue.
func (s *Service) readRaise(who muster.Actor, r wire.ChangeRequest) (time.Duration, error) {
	if r == (wire.ChangeRequest{}) {
		return 0, muster.Errorf(muster.EInvalid, "nothing is to be changed").Because(muster.ReasonRequired).WithHint("give a start, a walltime or nodes")
	}
	if r.Raise == "" {
		return 0, nil
	}
	if !who.Admin {
		return 0, muster.Errorf(muster.EForbidden, "only administrators raise requests in the queue").Because(muster.ReasonAdminOnly).WithHint("ask one")
	}
	return spec.ParseDuration(r.Raise)
}

// changed is the request of a cluster with what is changed in it.
func (s *Service) changed(c muster.Cluster, r wire.ChangeRequest) (muster.Spec, error) {
	need, now := c.Spec, s.Clock.Now()
	var problems []muster.Problem
	add := func(field string, why muster.Reason, message, hint string) {
		problems = append(problems, muster.Problem{Field: field, Reason: why, Message: message, Hint: hint})
	}
	if c.Promise != nil { // what is not changed stays, its time too
		need.Start = muster.Start{After: c.Promise.Start, Before: c.Promise.Start}
	}
	if r.Start != "" {
		start, err := spec.ParseStart(r.Start, now)
		if err != nil {
			return need, err
		}
		need.Start = start
	}
	if r.Walltime != "" {
		d, err := spec.ParseDuration(r.Walltime)
		most := longest
		if site := s.policy.Load().MaxWalltime; site > 0 && site < most {
			most = site
		}
		switch {
		case err != nil:
			return need, err
		case d < time.Minute:
			add("walltime", muster.ReasonOutOfRange, spec.FormatDuration(d)+" is too short", "write 1m or more")
		case d > most:
			add("walltime", muster.ReasonWalltimeTooLong, spec.FormatDuration(d)+" is longer than this site allows", "write "+spec.FormatDuration(most)+" or less")
		}
		need.Walltime = muster.Duration(d)
	}
	if r.Nodes != 0 {
		if r.Nodes < 1 || r.Nodes > spec.MaxNodes {
			add("nodes", muster.ReasonOutOfRange, fmt.Sprintf("%d nodes are not possible", r.Nodes), fmt.Sprintf("write 1 to %d", spec.MaxNodes))
		}
		if need.Min == need.Nodes || need.Min > r.Nodes {
			need.Min = r.Nodes
		}
		need.Nodes = r.Nodes
	}
	if !need.Start.IsZero() && need.Walltime == 0 {
		add("walltime", muster.ReasonRequired, "a promise needs an end", "write how long: 8h")
	}
	problems = append(problems, spec.CheckWindow(need, now)...)
	if e := spec.Error(problems); e != nil {
		return need, e
	}
	return need, nil
}
