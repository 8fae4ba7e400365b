package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// HPLResults are what HPL showed of a cluster, also of a deleted one: the newest, and the fastest.
func (s *Service) HPLResults(ctx context.Context, who muster.Actor, ref string, p wire.Page) (wire.HPLResults, error) {
	out := wire.HPLResults{Results: []muster.HPLResult{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		c, err := tx.FindCluster(ref)
		if err != nil {
			return err
		}
		out.ID, out.Name = c.ID, c.Name
		list, err := tx.HPLResults(store.HPLFilter{Cluster: c.ID, Limit: p.Size() + 1, After: p.After})
		if err != nil || len(list) == 0 {
			return err
		}
		list, more := partOf(list, p)
		out.Results = list
		if out.More, err = nextAfter(list, more, func(r muster.HPLResult) (string, error) { return tx.HPLCursor(r.ID) }); err != nil {
			return err
		}
		fastest, err := tx.HPLResults(store.HPLFilter{Cluster: c.ID, Fastest: true, Limit: 1})
		if err != nil {
			return err
		}
		out.Fastest = &fastest[0]
		return nil
	})
	return out, err
}
