package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// HPLResults are what HPL showed of a cluster, also of a deleted one: the newest so
// many, 0 for all, and the fastest.
func (s *Service) HPLResults(ctx context.Context, who muster.Actor, ref string, most int) (wire.HPLResults, error) {
	out := wire.HPLResults{Results: []muster.HPLResult{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		out.ID, out.Name = c.ID, c.Name
		list, err := tx.HPLResults(store.HPLFilter{Cluster: c.ID, Limit: most})
		if err != nil || len(list) == 0 {
			return err
		}
		out.Results = list
		fastest, err := tx.HPLResults(store.HPLFilter{Cluster: c.ID, Fastest: true, Limit: 1})
		if err != nil {
			return err
		}
		out.Fastest = &fastest[0]
		return nil
	})
	return out, err
}
