package volume

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Opener opens volumes to the machines of clusters that mount them over the network, and to
// nobody else: *nfs.Exports.
type Opener interface {
	// Open lets the machines of a cluster mount what it uses.
	Open(ctx context.Context, c muster.Cluster, mounts []Mount) error
	// Over lets go of a cluster's volumes, which may be erased then.
	Over(ctx context.Context, id muster.ClusterID) error
	// Hold has nobody serve what only a cluster mounts, so that its machines keep their locks while they stand still, until
	// Serve. still: they stand, since they were held before or until this is done. Both may be repeated, and for some clusters do
	// nothing.
	Hold(ctx context.Context, id muster.ClusterID, still bool) error
	Serve(ctx context.Context, id muster.ClusterID, still bool) error
}

// Clusters give clusters their volumes, wherever their machines are: what the Manager
// keeps, opened to the machines that are elsewhere.
type Clusters struct {
	Manager *Manager
	Exports Opener
}

// Ensure makes what the nodes of a cluster mount exist and lets its machines at it. Errors
// are those of Manager.Ensure.
func (c Clusters) Ensure(ctx context.Context, cluster muster.Cluster) ([]Mount, error) {
	list, err := c.Manager.Ensure(ctx, cluster)
	if err == nil {
		err = c.Exports.Open(ctx, cluster, list)
	}
	return list, err
}

// Release takes a deleted cluster's volumes from its machines, and keeps or erases them.
func (c Clusters) Release(ctx context.Context, cluster muster.Cluster) error {
	if err := c.Exports.Over(ctx, cluster.ID); err != nil {
		return err
	}
	return c.Manager.Release(ctx, cluster)
}

// Hold has nobody serve what only a cluster mounts, whose machines are about to stand still.
func (c Clusters) Hold(ctx context.Context, id muster.ClusterID, still bool) error {
	return c.Exports.Hold(ctx, id, still)
}

// Serve has it served again.
func (c Clusters) Serve(ctx context.Context, id muster.ClusterID, still bool) error {
	return c.Exports.Serve(ctx, id, still)
}

// Mounts are what the agents of a cluster mount themselves: some on all nodes, some on the
// head only. A cluster that ends mounts nothing any more.
func (c Clusters) Mounts(ctx context.Context, cluster muster.Cluster) (all, head []wire.Mount, err error) {
	if !cluster.Phase.HoldsMachines() || cluster.Phase == muster.ClusterDeleting || cluster.Phase == muster.ClusterFailed {
		return nil, nil, nil
	}
	list, err := c.Ensure(ctx, cluster)
	for _, m := range list {
		switch {
		case m.NFS == nil:
		case m.HeadOnly:
			head = append(head, *m.NFS)
		default:
			all = append(all, *m.NFS)
		}
	}
	return all, head, err
}
