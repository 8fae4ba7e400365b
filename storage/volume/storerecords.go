package volume

import (
	"context"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
)

// StoreRecords are the records of volumes in the store.
type StoreRecords struct{ DB *store.DB }

// Volumes lists volumes.
func (r StoreRecords) Volumes(ctx context.Context, q Query) (list []muster.Volume, err error) {
	err = r.DB.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err = tx.Volumes(store.VolumeFilter{Phases: q.Phases, Cluster: q.Cluster})
		return err
	})
	return list, err
}

// Volume is one volume.
func (r StoreRecords) Volume(ctx context.Context, id muster.VolumeID) (v muster.Volume, err error) {
	err = r.DB.View(ctx, muster.System(), func(tx *store.Tx) error {
		v, err = tx.Volume(id)
		return err
	})
	return v, err
}

// Add puts a new volume, unless its cluster is being deleted: nobody would release it.
func (r StoreRecords) Add(ctx context.Context, v muster.Volume, text string) error {
	return r.DB.Update(ctx, muster.System(), func(tx *store.Tx) error {
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

// Change changes one volume.
func (r StoreRecords) Change(ctx context.Context, id muster.VolumeID, change func(*muster.Volume) (string, bool)) error {
	return r.DB.Update(ctx, muster.System(), func(tx *store.Tx) error {
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

// Cluster is one cluster.
func (r StoreRecords) Cluster(ctx context.Context, id muster.ClusterID) (c muster.Cluster, err error) {
	err = r.DB.View(ctx, muster.System(), func(tx *store.Tx) error {
		c, err = tx.Cluster(id)
		return err
	})
	return c, err
}
