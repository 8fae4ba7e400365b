package converge

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/wire"
)

// Volumes keeps what outlives the machines of clusters. All are idempotent.
type Volumes interface {
	// Ensure makes what the cluster's nodes mount exist and says what each role
	// mounts.
	Ensure(ctx context.Context, c muster.Cluster) ([]VolumeMount, error)
	// Release is called when the cluster is deleted and its machines are off:
	// homes are retained or erased, the scheduler's state is erased. It only
	// says so; erasing goes on beside.
	Release(ctx context.Context, c muster.Cluster) error
	// Hold has nobody serve what only this cluster mounts, before its machines stand still: so they keep their locks. Serve
	// has it served again. still: they stand, since they were held before or until this is done.
	Hold(ctx context.Context, id muster.ClusterID, still bool) error
	Serve(ctx context.Context, id muster.ClusterID, still bool) error
}

// heldVolumes are those of one cluster.
type heldVolumes struct {
	of Volumes
	id muster.ClusterID
}

func (h heldVolumes) Hold(ctx context.Context, still bool) error { return h.of.Hold(ctx, h.id, still) }

func (h heldVolumes) Serve(ctx context.Context, still bool) error {
	return h.of.Serve(ctx, h.id, still)
}

// VolumeMount is a directory of a volume inside nodes: Share is made by the
// provider where machines have its host's kernel, Mount by the agent of one with a
// kernel of its own.
type VolumeMount struct {
	Share    *provider.BindMount
	Mount    *wire.Mount
	HeadOnly bool
}

// sharesOf are those that the provider makes for a node.
func sharesOf(mounts []VolumeMount, n muster.Node) []provider.BindMount {
	var out []provider.BindMount
	for _, m := range mounts {
		if m.Share != nil && (n.Head || !m.HeadOnly) {
			out = append(out, *m.Share)
		}
	}
	return out
}
