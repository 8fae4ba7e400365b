package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// DeleteCluster begins to give a cluster back. Deleting one that is on its way
// or gone is no error.
func (s *Service) DeleteCluster(ctx context.Context, who muster.Actor, ref string) (wire.Deleted, error) {
	var c muster.Cluster
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		var err error
		if c, err = tx.FindCluster(ref); err != nil {
			return err
		}
		if c.Phase == muster.ClusterDeleting || c.Phase == muster.ClusterDeleted {
			return nil
		}
		c.Phase, c.PhaseSince = muster.ClusterDeleting, s.Clock.Now()
		return tx.PutCluster(c, "deleted by "+who.Name)
	})
	if err != nil {
		return wire.Deleted{}, err
	}
	s.Changed(c.ID)
	return wire.Deleted{ID: c.ID, Name: c.Name, Status: c.Phase}, nil
}
