package control

import (
	"context"
	"errors"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/admit"
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
	for i, waiting := range s.waiting(queued) {
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
	answer, err := s.answer(ctx, c.ID, c.Spec, waiting.Image, ahead)
	switch {
	case err != nil:
		return false, err
	case answer.Verdict == muster.VerdictNever:
		return false, s.tell(ctx, c, s.neverNow(admit.Refusal(c.Spec, answer)))
	case answer.Verdict == muster.VerdictQueued:
		return false, s.tell(ctx, c, s.waitsForMachines(answer))
	}
	keys, err := newSecrets(wanted{spec: c.Spec, image: waiting.Image})
	if err != nil {
		return false, err
	}
	done := false
	update := s.Store.Update
	if c.Spec.Nodes > many {
		update = s.Store.UpdateMany
	}
	err = update(ctx, muster.System(), func(tx *store.Tx) error {
		done = false
		now, err := tx.Cluster(c.ID)
		if err != nil || now.Phase != muster.ClusterQueued {
			return err // deleted meanwhile
		}
		if err := s.verify(tx, answer.Plan); err != nil {
			if muster.CodeOf(err) == muster.EConflict {
				return nil // somebody was faster; the next promotion tries again
			}
			return err
		}
		done = true
		return s.assign(tx, &now, waiting.Image, *answer.Plan, keys, "machines are free")
	})
	return done && err == nil, err
}
