package control

import (
	"context"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/measure/compare"
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

// hplOf are the newest results of HPL of a cluster, of a class, or of the clusters in which a
// machine was measured, where it took part.
func hplOf(tx *store.Tx, o subject, since time.Time, list []compare.Measurement) ([]muster.HPLResult, error) {
	var out []muster.HPLResult
	take := func(f store.HPLFilter, node string) error {
		f.Limit = mostMeasured
		results, err := tx.HPLResults(f)
		for _, r := range results {
			if !r.Made.Before(since) && (node == "" || slices.Contains(r.Nodes, node)) {
				out = append(out, r)
			}
		}
		return err
	}
	switch o.kind {
	case ofCluster:
		return out, take(store.HPLFilter{Cluster: o.cluster.ID}, "")
	case ofClass:
		err := take(store.HPLFilter{Class: o.class}, "")
		for i := range out {
			out[i].Nodes = make([]string, len(out[i].Nodes)) // how many, and not which
		}
		return out, err
	}
	type place struct {
		cluster muster.ClusterID
		node    string
	}
	seen := map[place]bool{}
	for _, m := range list {
		for _, c := range m.Certificates {
			p := place{c.Cluster, c.Node}
			if c.Kind != muster.CertifiesNode || c.Node == "" || seen[p] {
				continue
			}
			seen[p] = true
			if err := take(store.HPLFilter{Cluster: c.Cluster}, c.Node); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}
