package nfs

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/store"
)

// exportPatience is how long a volume that cannot be mounted may hold up that all others
// are served anew. What an earlier server served is served meanwhile.
const exportPatience = time.Minute

// Run takes up what living clusters use of the volumes of k, and serves it until ctx ends.
// What serves goes on without this process.
func (x *Exports) Run(ctx context.Context, k *volume.Manager) error {
	if x.c.Server == nil {
		return nil
	}
	x.mu.Lock()
	x.kept = k
	x.mu.Unlock()
	// Whoever is not noted loses its volumes: what fails is tried again for a while before
	// that counts.
	for end := x.c.Clock.Now().Add(exportPatience); ; {
		err := x.noteAll(ctx, k)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the server ends, and that is why it failed
		}
		if x.c.Clock.Now().After(end) {
			x.c.Log.Error("volume export failed", "error", err)
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-x.c.Clock.After(5 * time.Second):
		}
	}
	if err := x.endOwn(ctx); err != nil && ctx.Err() == nil {
		x.c.Log.Error("ending NFS servers of deleted clusters failed", "error", err)
	}
	close(x.ready)
	if err := x.set(ctx, x.c.Own.all()...); err != nil && ctx.Err() == nil {
		x.c.Log.Error("volume export failed", "error", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return x.c.Server.Run(ctx) })
	if x.c.Own != nil {
		g.Go(func() error { return x.c.Own.Run(ctx) })
	}
	return g.Wait()
}

// endOwn ends the servers of clusters that are deleted.
func (x *Exports) endOwn(ctx context.Context) (err error) {
	for _, id := range x.c.Own.all() {
		gone := false
		bad := x.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
			c, err := tx.Cluster(id)
			gone = muster.CodeOf(err) == muster.ENotFound || err == nil && c.Phase == muster.ClusterDeleted
			if gone {
				return nil
			}
			return err
		})
		if bad == nil && gone {
			bad = x.c.Own.over(id)
		}
		err = errors.Join(err, bad)
	}
	return err
}

// noteAll notes what all living clusters use. One that is deleted still shuts down.
func (x *Exports) noteAll(ctx context.Context, k *volume.Manager) error {
	var list []muster.Cluster
	err := x.c.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.Clusters(store.ClusterFilter{Living: true})
		return err
	})
	for _, c := range list {
		if !c.Phase.HoldsMachines() {
			continue
		}
		if c.Phase == muster.ClusterDeleting { // no volume is mounted for it any more
			if left, failed := x.tenants(ctx, c.ID); failed == nil && len(left) == 0 {
				continue
			}
		}
		if ours, failed := x.Elsewhere(ctx, c); failed == nil && !ours {
			continue
		}
		mounts, failed := k.Ensure(ctx, c)
		if failed == nil {
			failed = x.note(ctx, c, mounts)
		}
		err = errors.Join(err, failed)
	}
	return err
}
