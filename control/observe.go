package control

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// Usage is what the nodes of a cluster use.
func (s *Service) Usage(ctx context.Context, who muster.Actor, ref string, samples int) (wire.ClusterUsage, error) {
	if samples <= 0 {
		samples = 1
	}
	c, nodes, err := s.nodes(ctx, who, ref)
	if err != nil {
		return wire.ClusterUsage{}, err
	}
	// A machine that was given back may serve somebody else by now.
	holds := map[muster.MachineID]muster.Machine{}
	err = s.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		held, err := tx.Machines(store.MachineFilter{Cluster: c.ID})
		for _, m := range held {
			holds[m.ID] = m
		}
		return err
	})
	if err != nil {
		return wire.ClusterUsage{}, err
	}
	out := wire.ClusterUsage{ID: c.ID, Status: c.Phase}
	for _, n := range nodes {
		u := wire.NodeUsage{Node: n.Name, Samples: []wire.Usage{}}
		if s.Agents != nil && fills(holds[n.Machine], n) {
			u.Samples = append(u.Samples, s.Agents.Usage(n.Machine, samples)...)
		}
		out.Nodes = append(out.Nodes, u)
	}
	return out, nil
}

func (s *Service) nodes(ctx context.Context, who muster.Actor, ref string) (muster.Cluster, []muster.Node, error) {
	var c muster.Cluster
	var nodes []muster.Node
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		var err error
		if c, err = tx.FindCluster(ref); err != nil {
			return err
		}
		nodes, err = tx.Nodes(c.ID)
		return err
	})
	return c, nodes, err
}
