package agentserver

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Applied reports where the newest configuration of a cluster is in force, by what its
// nodes said last.
func (s *Server) Applied(ctx context.Context, id muster.ClusterID) (wire.Applied, error) {
	var a wire.Applied
	newest, err := s.c.Generation(ctx, id)
	if err != nil {
		return a, err
	}
	var nodes []muster.Node
	err = s.c.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		nodes, err = tx.Nodes(id)
		return err
	})
	if err != nil {
		return a, err
	}
	for _, n := range nodes {
		if n.Phase != muster.NodeReady || n.Machine == "" {
			continue // it boots with the newest, or is not there
		}
		a.Nodes++
		last, ok := s.Last(n.Machine)
		if !ok || last.Cluster != n.Cluster || last.Node != n.Name || last.Report.Attempt != n.Attempt || last.Report.Generation < newest {
			a.Waiting = append(a.Waiting, n.Name)
			continue
		}
		bad := ""
		for _, c := range last.Report.Checks {
			if c.Name == "configuration" && !c.OK {
				bad = c.Text
			}
		}
		if bad != "" {
			a.Failed = append(a.Failed, wire.NotApplied{Node: n.Name, Text: bad})
			continue
		}
		a.On++
	}
	return a, nil
}
