package nfs

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// ExportServer serves directories to addresses: *Server.
type ExportServer interface {
	// Set has exactly these exports served.
	Set(ctx context.Context, set []Export) error
	// Mount is how a machine mounts an export.
	Mount(name, target string, readOnly bool) wire.Mount
	// Run serves until ctx ends.
	Run(ctx context.Context) error
}

// ExportsConfig is what Exports need. Store is required.
type ExportsConfig struct {
	Store *store.DB
	// Providers are what the machines of each provider can do that are served here. Others are
	// not.
	Providers muster.Providers
	// Server serves. Nil: nothing can be served, and Why says why.
	Server ExportServer
	Why    error
	// Address is that of a machine on the management network; false: it has none now.
	// Required with Server.
	Address func(muster.MachineID) (netip.Addr, bool)
	Clock   muster.Clock
	Log     *slog.Logger
}

// Exports serve volumes to machines that have kernels of their own: each cluster's to its
// machines' addresses, and to nobody else.
type Exports struct {
	c     ExportsConfig
	ready chan struct{} // closed once what living clusters use is known

	mu   sync.Mutex
	uses map[muster.ClusterID][]clusterUse
}

// clusterUse is a directory that machines of a cluster mount.
type clusterUse struct {
	name, path string
	readOnly   bool
	machines   map[muster.MachineID]netip.Addr
}

// NewExports makes Exports. Nothing is served before Run.
func NewExports(c ExportsConfig) *Exports {
	if c.Clock == nil {
		c.Clock = muster.SystemClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Exports{c: c, ready: make(chan struct{}), uses: map[muster.ClusterID][]clusterUse{}}
}

// Elsewhere reports whether machines of a cluster have kernels of their own. It fails
// where they have, and nothing can be served to them.
func (x *Exports) Elsewhere(ctx context.Context, c muster.Cluster) (bool, error) {
	elsewhere := false
	err := x.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{Cluster: c.ID})
		for _, m := range list {
			elsewhere = elsewhere || x.c.Providers.For(m.Provider, c.Spec.VM).OwnKernel
		}
		return err
	})
	if err == nil && elsewhere && x.c.Server == nil {
		err = x.c.Why
	}
	return elsewhere, err
}

// Mount is how a machine elsewhere mounts an export.
func (x *Exports) Mount(name, target string, readOnly bool) wire.Mount {
	if x.c.Server == nil {
		return wire.Mount{}
	}
	return x.c.Server.Mount(name, target, readOnly)
}

// Open lets the machines of a cluster mount what it uses.
func (x *Exports) Open(ctx context.Context, c muster.Cluster, mounts []volume.Mount) error {
	if x.c.Server == nil {
		return nil
	}
	if err := x.await(ctx); err != nil {
		return err
	}
	if ours, err := x.Elsewhere(ctx, c); err != nil || !ours {
		return err
	}
	if err := x.note(ctx, c, mounts); err != nil {
		return err
	}
	return x.set(ctx)
}

// Over lets go of a cluster's volumes, which may be erased then.
func (x *Exports) Over(ctx context.Context, id muster.ClusterID) error {
	if x.c.Server == nil {
		return nil
	}
	if err := x.await(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	_, had := x.uses[id]
	delete(x.uses, id)
	x.mu.Unlock()
	if !had {
		return nil
	}
	return x.set(ctx)
}

// await waits until what living clusters use is known.
func (x *Exports) await(ctx context.Context) error {
	select {
	case <-x.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// set makes the server serve what is noted.
func (x *Exports) set(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []Use
	for _, uses := range x.uses {
		for _, u := range uses {
			one := Use{Name: u.name, Path: u.path, ReadOnly: u.readOnly}
			for _, a := range u.machines {
				one.Machines = append(one.Machines, a)
			}
			all = append(all, one)
		}
	}
	return x.c.Server.Set(ctx, Of(all))
}
