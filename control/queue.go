package control

import (
	"context"
	"errors"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/admit"
	"github.com/muster-hpc/muster/allocate"
	"github.com/muster-hpc/muster/store"
)

// Promote gives machines to the clusters that wait, first come first, and
// tells how many it served. It is called when machines may have become free.
// A request never takes a machine that one before it could use.
func (s *Service) Promote(ctx context.Context) (int, error) {
	s.promoting.Lock()
	defer s.promoting.Unlock()
	var queued []muster.Cluster
	err := s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		var err error
		queued, err = tx.Clusters(store.ClusterFilter{Phases: []muster.ClusterPhase{muster.ClusterQueued}})
		return err
	})
	if err != nil {
		return 0, err
	}
	served := 0
	var failed error
	ahead := []admit.Waiting{}
	for i, waiting := range s.Allocator.Waiting(queued) {
		c := queued[i]
		done, err := s.promote(ctx, c, waiting, ahead)
		if ctx.Err() != nil {
			return served, ctx.Err()
		}
		if err != nil {
			// One request that cannot be served must not hold up the others.
			s.Log.Warn("a waiting cluster could not be given machines", "cluster", c.ID, "error", err)
			failed = errors.Join(failed, err)
		}
		if done {
			served++
			s.Changed(c.ID)
			continue
		}
		ahead = append(ahead, waiting)
	}
	return served, failed
}

func (s *Service) promote(ctx context.Context, c muster.Cluster, waiting admit.Waiting, ahead []admit.Waiting) (bool, error) {
	if waiting.Image == nil {
		return false, s.tell(ctx, c, s.neverNow(s.noImage(c.Spec.Image)))
	}
	keys, err := newSecrets(wanted{spec: c.Spec, image: waiting.Image})
	if err != nil {
		return false, err
	}
	demand := allocate.Demand{Cluster: c.ID, Purpose: allocate.Queue, Spec: c.Spec, Image: waiting.Image}
	done := false
	answers, err := s.Allocator.Take(ctx, muster.System(), allocate.Taking{
		Nodes: c.Spec.Nodes, Ahead: ahead, Once: true, Now: true,
		Demands: func(*store.Tx) ([]allocate.Demand, error) { return []allocate.Demand{demand}, nil },
		Record: func(tx *store.Tx, _ []allocate.Demand, answers []muster.Answer) error {
			now, err := tx.Cluster(c.ID)
			if done = err == nil && now.Phase == muster.ClusterQueued; !done {
				return err // deleted meanwhile
			}
			return s.assign(tx, &now, waiting.Image, *answers[0].Plan, keys, "machines are free")
		},
	})
	switch {
	case allocate.Stale(err):
		return false, nil // somebody was faster; the next promotion tries again
	case err != nil:
		return false, err
	case answers[0].Verdict == muster.VerdictNever:
		return false, s.tell(ctx, c, s.neverNow(admit.Refusal(c.Spec, answers[0])))
	case answers[0].Verdict == muster.VerdictQueued:
		return false, s.tell(ctx, c, s.waitsForMachines(answers[0]))
	}
	return done, nil
}
