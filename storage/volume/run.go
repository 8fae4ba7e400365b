package volume

import (
	"context"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
)

// look is how often expiry is looked at when nothing wakes the Manager.
const look = 30 * time.Second

// Run erases what has expired or is to go, and measures what there is, until
// ctx ends.
func (k *Manager) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { k.measureAll(ctx) })
	defer wg.Wait()
	if err := k.Abandoned(ctx); err != nil {
		k.Log.Warn("listing expired volumes failed", "error", err)
	}
	for {
		wait := look
		failed, err := k.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			k.Log.Warn("listing volumes failed", "error", err)
		case failed:
			wait = k.Retry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.kick:
		case <-k.Clock.After(wait):
		}
	}
}

// Abandoned releases volumes whose cluster is deleted. A crash between the two
// cannot leave any; a store that was restored from a copy may have some.
func (k *Manager) Abandoned(ctx context.Context) error {
	list, err := k.Records.Volumes(ctx, Query{Phases: []muster.VolumePhase{muster.VolumeReady}})
	if err != nil {
		return err
	}
	for _, v := range list {
		if v.Cluster == "" || v.Kind == muster.VolumeData {
			continue
		}
		c, err := k.Records.Cluster(ctx, v.Cluster)
		if err == nil && c.Phase == muster.ClusterDeleted {
			err = k.Release(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sweep erases what is to go now, one volume after the other, and reports whether
// something could not be erased.
func (k *Manager) Sweep(ctx context.Context) (failed bool, err error) {
	list, err := k.Records.Volumes(ctx, Query{Phases: []muster.VolumePhase{muster.VolumeRetained, muster.VolumeDeleting}})
	if err != nil {
		return false, err
	}
	for _, v := range list {
		if v.Phase == muster.VolumeRetained {
			if !k.expired(v) {
				continue
			}
			// Asked again within the transaction: somebody may have taken it.
			var going bool
			err := k.Records.Change(ctx, v.ID, func(v *muster.Volume) (string, bool) {
				if going = v.Phase == muster.VolumeRetained && k.expired(*v); going {
					v.Phase = muster.VolumeDeleting
				}
				return "it was kept until " + v.Expires.UTC().Format(time.RFC3339), going
			})
			if err != nil || !going {
				failed = failed || err != nil
				continue
			}
		}
		if err := k.erase(ctx, v); err != nil {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			failed = true
			k.Log.Warn("erasing volume failed", "volume", v.ID, "error", err)
		}
	}
	return failed, nil
}

func (k *Manager) expired(v muster.Volume) bool {
	return !v.Expires.IsZero() && !k.Clock.Now().Before(v.Expires)
}

// erase removes the data of a volume that is on record as deleting, and then
// says so on record. Killed in between, it does both again.
func (k *Manager) erase(ctx context.Context, v muster.Volume) (err error) {
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if delete(k.failing, v.ID); err != nil {
			k.failing[v.ID] = err
		}
	}()
	d, err := k.driver(v)
	if err != nil {
		return err
	}
	began := k.Clock.Now()
	if err := d.Erase(ctx, v); err != nil {
		return err
	}
	return k.Records.Change(ctx, v.ID, func(v *muster.Volume) (string, bool) {
		if v.Phase != muster.VolumeDeleting {
			return "", false
		}
		v.Phase, v.Used, v.Expires = muster.VolumeDeleted, 0, time.Time{}
		return "erased in " + k.Clock.Now().Sub(began).Round(time.Millisecond).String(), true
	})
}

// measureAll measures every living volume from time to time, one at a time: at
// most a tenth of the time is spent on looking.
func (k *Manager) measureAll(ctx context.Context) {
	wait := min(k.Measure, time.Minute) // a server that starts has better things to do
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.Clock.After(wait):
		}
		began := time.Now()
		if err := k.MeasureDue(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("measuring volumes failed", "error", err)
		}
		wait = max(min(k.Measure, time.Minute), 9*time.Since(began))
	}
}

// MeasureDue measures the volumes that were not measured for a while.
func (k *Manager) MeasureDue(ctx context.Context) error {
	list, err := k.Records.Volumes(ctx, Query{Phases: []muster.VolumePhase{muster.VolumeReady, muster.VolumeRetained}})
	if err != nil {
		return err
	}
	for _, v := range list {
		now := k.Clock.Now()
		if now.Sub(v.UsedAt) < k.Measure || v.Phase == muster.VolumeRetained && v.UsedAt.After(v.PhaseSince) {
			continue // what is retained does not change
		}
		if err := k.Measured(ctx, v); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			k.Log.Debug("measuring volume failed", "volume", v.ID, "error", err)
		}
	}
	return nil
}

// Measured measures one volume now.
func (k *Manager) Measured(ctx context.Context, v muster.Volume) error {
	d, err := k.driver(v)
	if err != nil {
		return err
	}
	used, part, err := d.Usage(ctx, v)
	if muster.CodeOf(err) == muster.ENotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if part && used < v.Used {
		used = v.Used
	}
	return k.Records.Change(ctx, v.ID, func(now *muster.Volume) (string, bool) {
		if now.Phase != v.Phase {
			return "", false
		}
		now.Used, now.UsedAt = used, k.Clock.Now()
		return "", true
	})
}
