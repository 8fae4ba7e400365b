package converge

import (
	"context"

	"github.com/muster-hpc/muster"
)

// workOf returns the cluster's work; v.mu is held.
func (v *Converger) workOf(id muster.ClusterID) *clusterWork {
	w := v.work[id]
	if w == nil {
		w = &clusterWork{}
		v.work[id] = w
	}
	return w
}

// beside runs work for a cluster beside the loop, unless it is under way, and
// wakes the cluster when it ends.
func (v *Converger) beside(id muster.ClusterID, which func(*clusterWork) *Work, f func(ctx context.Context) error) {
	v.mu.Lock()
	w := which(v.workOf(id))
	if w.Busy || w.Done {
		v.mu.Unlock()
		return
	}
	w.Busy = true
	v.mu.Unlock()
	v.calls.Go(func() {
		ctx, cancel := v.callContext(v.c.CleanTimeout)
		err := f(ctx)
		cancel()
		v.mu.Lock()
		w.Busy, w.Done, w.Err = false, err == nil, err
		if err != nil {
			w.Tries++
			w.Retry = v.c.Clock.Now().Add(v.c.Limits.retryAfter(w.Tries))
		}
		v.mu.Unlock()
		if err != nil && v.ctx.Err() == nil {
			v.c.Log.Warn("cluster preparation failed", "cluster", id, "error", err)
		}
		v.Wake(id)
	})
}

// prepare makes what must be there before the first node boots.
func (v *Converger) prepare(view View) {
	c := view.Cluster
	names := providersOf(view)
	v.beside(c.ID, func(w *clusterWork) *Work { return &w.prepared }, func(ctx context.Context) error {
		image := c.Image
		if image == "" && v.c.Images != nil {
			var err error
			if image, err = v.c.Images.Resolve(ctx, c); err != nil {
				return err
			}
		}
		if c.Subnet.IsValid() {
			for _, name := range names {
				p := v.providers[name]
				if p == nil {
					return noProvider(name)
				}
				if err := p.EnsureNetworks(ctx, networksOf(c)); err != nil {
					return err
				}
			}
		}
		var mounts []VolumeMount
		if v.c.Volumes != nil {
			var err error
			if mounts, err = v.c.Volumes.Ensure(ctx, c); err != nil {
				return err
			}
		}
		v.mu.Lock()
		w := v.workOf(c.ID)
		w.prepared.Image, w.mounts = image, mounts
		v.mu.Unlock()
		return nil
	})
}

// dismantle removes the cluster's network, and lets go of its volumes when it is
// deleted.
// The machines are off.
func (v *Converger) dismantle(view View, home bool) {
	c := view.Cluster
	which := func(w *clusterWork) *Work { return &w.dismantled }
	if home {
		which = func(w *clusterWork) *Work { return &w.removed }
	}
	v.beside(c.ID, which, func(ctx context.Context) error {
		// Whatever a retired provider had is gone with it.
		for _, p := range v.providers {
			if err := p.RemoveNetworks(ctx, []muster.ClusterID{c.ID}); err != nil {
				return err
			}
		}
		if home && v.c.Volumes != nil {
			return v.c.Volumes.Release(ctx, c)
		}
		return nil
	})
}

// providersOf lists the providers of a cluster's machines.
func providersOf(view View) []string {
	var out []string
	seen := map[string]bool{}
	for _, n := range view.Nodes {
		if p := view.Machines[n.Machine].Provider; p != "" && !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}
