package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/converge"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/volume"
	"github.com/muster-hpc/muster/wire"
)

// volumes joins what keeps volumes with the records and the loops.
type volumes struct {
	*volume.Keeper
	host *volume.HostDir
	db   *store.DB
}

// openVolumes makes the keeper of volumes, and logs what belongs to none.
func (s *Server) openVolumes(ctx context.Context) {
	host := volume.NewHostDir(s.state.path("volumes"))
	var served volume.Driver = volume.NewServed(s.state.path("volumes"))
	if os.Geteuid() != 0 { // who mounts nothing serves nobody
		served = host
	}
	s.volumes = &volumes{host: host, db: s.db, Keeper: volume.New(volume.Config{
		Records: volumeRecords{s.db}, Clock: s.cfg.Clock, Log: s.log,
		Drivers: map[muster.VolumeDriver]volume.Driver{
			muster.DriverHostDir: host, muster.DriverServed: served, muster.DriverNFS: volume.NFS{},
		},
		Elsewhere: s.elsewhere, Export: s.exported,
	})}
	strays, err := s.volumes.strays(ctx)
	if err != nil {
		s.log.Warn("the directories of volumes cannot be listed", "error", err)
	}
	for _, at := range strays {
		s.log.Warn("a directory belongs to no volume on record; nobody erases it", "path", at)
	}
}

// clusterVolumes is the keeper as converge knows it.
type clusterVolumes struct{ s *Server }

func (c clusterVolumes) Ensure(ctx context.Context, cluster muster.Cluster) ([]converge.VolumeMount, error) {
	list, err := c.s.volumes.Ensure(ctx, cluster)
	if err == nil {
		err = c.s.export(ctx, cluster, list)
	}
	out := make([]converge.VolumeMount, 0, len(list))
	for _, m := range list {
		o := converge.VolumeMount{Mount: m.NFS, HeadOnly: m.HeadOnly}
		if s := m.Share; s != nil {
			o.Share = &provider.Share{Path: s.Path, Target: s.Target, ReadOnly: s.ReadOnly, Seed: s.Seed}
		}
		out = append(out, o)
	}
	return out, err
}

func (c clusterVolumes) Release(ctx context.Context, cluster muster.Cluster) error {
	if err := c.s.over(ctx, cluster.ID); err != nil {
		return err
	}
	return c.s.volumes.Release(ctx, cluster)
}

// volumeRecords keeps the records of volumes in the store.
type volumeRecords struct{ db *store.DB }

func (r volumeRecords) Volumes(ctx context.Context, q volume.Query) (list []muster.Volume, err error) {
	err = r.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err = tx.Volumes(store.VolumeFilter{Phases: q.Phases, Cluster: q.Cluster})
		return err
	})
	return list, err
}

func (r volumeRecords) Volume(ctx context.Context, id muster.VolumeID) (v muster.Volume, err error) {
	err = r.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		v, err = tx.Volume(id)
		return err
	})
	return v, err
}

func (r volumeRecords) Add(ctx context.Context, v muster.Volume, text string) error {
	return r.db.Update(ctx, muster.System(), func(tx *store.Tx) error {
		if v.Cluster != "" {
			c, err := tx.Cluster(v.Cluster)
			if err != nil {
				return err
			}
			if c.Phase == muster.ClusterDeleting || c.Phase == muster.ClusterDeleted {
				return muster.Errorf(muster.EUnavailable, "cluster %s is being deleted", c.ID).Because(muster.ReasonWrongPhase)
			}
		}
		return tx.PutVolume(v, text)
	})
}

func (r volumeRecords) Change(ctx context.Context, id muster.VolumeID, change func(*muster.Volume) (string, bool)) error {
	return r.db.Update(ctx, muster.System(), func(tx *store.Tx) error {
		v, err := tx.Volume(id)
		if err != nil {
			return err
		}
		text, ok := change(&v)
		if !ok {
			return nil
		}
		return tx.PutVolume(v, text)
	})
}

func (r volumeRecords) Cluster(ctx context.Context, id muster.ClusterID) (c muster.Cluster, err error) {
	err = r.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		c, err = tx.Cluster(id)
		return err
	})
	return c, err
}

// healthy tells the health page what cannot be erased, and what lies beside
// the volumes without a record.
func (v *volumes) healthy(ctx context.Context) wire.HealthPart {
	part := wire.HealthPart{Name: "volumes", OK: true}
	// Anybody may read this page: which and where is in the log.
	if n := len(v.Failing()); n > 0 {
		part.OK, part.Text = false, fmt.Sprintf("%d cannot be erased, and are tried again: see the server's log", n)
	}
	if strays, err := v.strays(ctx); err != nil {
		part.OK, part.Text = false, "the directories of volumes cannot be listed"
	} else if len(strays) > 0 && part.OK {
		part.Text = fmt.Sprintf("%d directories belong to no volume on record and are left alone: see the server's log", len(strays))
	}
	return part
}

// strays lists directories that no living volume has.
func (v *volumes) strays(ctx context.Context) ([]string, error) {
	known := map[muster.VolumeID]bool{}
	// What is on disk is listed first: a volume made meanwhile is on record.
	list, err := v.host.Entries()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	err = v.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		all, err := tx.Volumes(store.VolumeFilter{Living: true})
		for _, o := range all {
			known[o.ID] = true
		}
		return err
	})
	return slices.DeleteFunc(list, func(at string) bool { return known[muster.VolumeID(filepath.Base(at))] }), err
}
