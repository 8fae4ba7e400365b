package daemon

import (
	"context"
	"os"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/storage/volume"
)

// openVolumes makes the volume manager, and logs what belongs to none.
func (s *Server) openVolumes(ctx context.Context) {
	host := volume.NewHostPath(s.state.path("volumes"))
	var served volume.Driver = volume.NewManagedNFS(s.state.path("volumes"))
	if os.Geteuid() != 0 { // who mounts nothing serves nobody
		served = host
	}
	s.volumes = volume.New(volume.Config{
		Records: volume.StoreRecords{DB: s.db}, Host: host, Clock: s.cfg.Clock, Log: s.log,
		Drivers: map[muster.VolumeDriver]volume.Driver{
			muster.DriverHostPath: host, muster.DriverManagedNFS: served, muster.DriverNFS: volume.NFS{},
		},
		NeedsNetworkMounts: s.exports.Elsewhere, Export: s.exports.Mount,
	})
	s.volumes.LogStrays(ctx)
}

// clusterVolumes is what gives clusters their volumes.
func (s *Server) clusterVolumes() volume.Clusters {
	return volume.Clusters{Manager: s.volumes, Exports: s.exports}
}

// convergeVolumes gives clusters their volumes, in the words of converge.
type convergeVolumes struct{ volume.Clusters }

func (c convergeVolumes) Ensure(ctx context.Context, cluster muster.Cluster) ([]converge.VolumeMount, error) {
	list, err := c.Clusters.Ensure(ctx, cluster)
	out := make([]converge.VolumeMount, 0, len(list))
	for _, m := range list {
		o := converge.VolumeMount{Mount: m.NFS, HeadOnly: m.HeadOnly}
		if s := m.Share; s != nil {
			o.Share = &provider.BindMount{Path: s.Path, Target: s.Target, ReadOnly: s.ReadOnly, Seed: s.Seed}
		}
		out = append(out, o)
	}
	return out, err
}
