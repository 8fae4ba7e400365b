package nfs

import (
	"context"
	"errors"
	"time"

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
	close(x.ready)
	if err := x.set(ctx); err != nil && ctx.Err() == nil {
		x.c.Log.Error("volume export failed", "error", err)
	}
	return x.c.Server.Run(ctx)
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
