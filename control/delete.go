package control

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// DeleteCluster begins to give a cluster back. Deleting one that is on its way
// or gone is no error.
func (s *Service) DeleteCluster(ctx context.Context, who muster.Actor, ref string) (wire.Deleted, error) {
	var c muster.Cluster
	var home string
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		var err error
		if c, err = tx.FindCluster(ref); err != nil {
			return err
		}
		if err := tx.MayChange(c); err != nil {
			return err
		}
		if c.Phase == muster.ClusterDeleting || c.Phase == muster.ClusterDeleted {
			return nil
		}
		c.Phase, c.PhaseSince = muster.ClusterDeleting, s.Clock.Now()
		c.ETA, c.ETASpread, c.Deadline, c.Scaling = time.Time{}, 0, time.Time{}, nil
		if home, err = keptHome(tx, c); err != nil {
			return err
		}
		return tx.PutCluster(c, "deleted by "+who.Name)
	})
	if err != nil {
		return wire.Deleted{}, err
	}
	s.Changed(c.ID)
	out := wire.Deleted{ID: c.ID, Name: c.Name, Status: c.Phase, Home: home}
	if home != "" {
		out.Kept = c.Spec.Retain
	}
	return out, nil
}
