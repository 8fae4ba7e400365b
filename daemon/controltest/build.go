package controltest

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// build moves clusters along as soon as they are committed, until stopped.
func (s *Site) build() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	feed := s.Store.Subscribe(4096)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case a, open := <-feed.C:
				if !open {
					return
				}
				if a.Kind != muster.AuditCluster {
					continue
				}
				switch muster.ClusterPhase(a.To) {
				case muster.ClusterBuilding:
					_ = s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return Finish(tx, a.Cluster) })
				case muster.ClusterDeleting:
					_ = s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return GiveBack(tx, a.Cluster) })
					_, _ = s.Control.Allocator.Promote(ctx)
				}
			}
		}
	}()
	return func() { cancel(); feed.Close(); <-done }
}

// Finish makes a building cluster ready, through every phase.
func Finish(tx *store.Tx, id muster.ClusterID) error {
	c, err := tx.Cluster(id)
	if err != nil || c.Phase != muster.ClusterBuilding {
		return err
	}
	nodes, err := tx.Nodes(id)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		m, err := tx.Machine(n.Machine)
		if err != nil {
			return err
		}
		m.Phase, m.Attempt, n.Attempt = muster.MachineActive, 1, 1
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
		for _, p := range []muster.NodePhase{muster.NodeBooting, muster.NodeConfiguring, muster.NodeValidating, muster.NodeReady} {
			n.Phase = p
			if err := tx.PutNode(n, ""); err != nil {
				return err
			}
		}
	}
	for _, p := range []muster.ClusterPhase{muster.ClusterValidating, muster.ClusterReady} {
		c.Phase = p
		if p == muster.ClusterReady {
			c.Ready = c.Created
		}
		if err := tx.PutCluster(c, ""); err != nil {
			return err
		}
	}
	return nil
}

// GiveBack ends a deleting cluster and frees its machines.
func GiveBack(tx *store.Tx, id muster.ClusterID) error {
	c, err := tx.Cluster(id)
	if err != nil || c.Phase != muster.ClusterDeleting {
		return err
	}
	nodes, err := tx.Nodes(id)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if n.Phase == muster.NodeGone {
			continue
		}
		machine := n.Machine
		n.Phase = muster.NodeDraining
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		n.Phase, n.Machine = muster.NodeGone, ""
		if err := tx.PutNode(n, ""); err != nil {
			return err
		}
		m, err := tx.Machine(machine)
		if err != nil {
			return err
		}
		m.Phase, m.Cluster, m.Node = muster.MachineCleaning, "", ""
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
		m.Phase = muster.MachineFree
		if err := tx.PutMachine(m, ""); err != nil {
			return err
		}
	}
	c.Phase, c.Deleted = muster.ClusterDeleted, c.Created
	return tx.PutCluster(c, "")
}
