package daemon

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/converge"
	"github.com/muster-hpc/muster/wire"
)

// mounts are what the agents of a cluster mount themselves: some on all nodes,
// some on the head only.
type mounts struct {
	All  []wire.Mount `json:"all,omitempty"`
	Head []wire.Mount `json:"head,omitempty"`
}

// mountsOf asks what the nodes of a cluster mount.
func (s *Server) mountsOf(ctx context.Context, c muster.Cluster) (mounts, error) {
	var m mounts
	if s.volumes == nil || !c.Phase.HoldsMachines() || c.Phase == muster.ClusterDeleting || c.Phase == muster.ClusterFailed {
		return m, nil
	}
	var list []converge.VolumeMount
	list, err := clusterVolumes{s}.Ensure(ctx, c)
	for _, v := range list {
		switch {
		case v.Mount == nil:
		case v.HeadOnly:
			m.Head = append(m.Head, *v.Mount)
		default:
			m.All = append(m.All, *v.Mount)
		}
	}
	return m, err
}

// of is what one node mounts.
func (m mounts) of(n muster.Node) []wire.Mount {
	if !n.Head || len(m.Head) == 0 {
		return m.All
	}
	return append(append([]wire.Mount{}, m.All...), m.Head...)
}
