package nfs

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
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
	// Own gives clusters servers of their own. Nil: Server serves all.
	Own *Own
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
	kept *volume.Manager // nil before Run
	uses map[muster.ClusterID][]clusterUse
}

// clusterUse is a directory that machines of a cluster mount.
type clusterUse struct {
	name, path string
	readOnly   bool
	own        bool // it is served by the cluster's own server
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

// Mount is how a machine of a cluster elsewhere mounts an export.
func (x *Exports) Mount(ctx context.Context, c muster.Cluster, e volume.Export, target string, readOnly bool) (wire.Mount, error) {
	if x.c.Server == nil {
		return wire.Mount{}, nil
	}
	if e.Cluster == c.ID {
		own, err := x.c.Own.take(c, func() (bool, error) { return x.booted(ctx, c.ID) })
		if err != nil {
			return wire.Mount{}, err
		}
		if own != nil {
			return own.Mount(e.Name, target, readOnly), nil
		}
	}
	return x.c.Server.Mount(e.Name, target, readOnly), nil
}

// booted reports whether a machine of a cluster was ever started.
func (x *Exports) booted(ctx context.Context, id muster.ClusterID) (yes bool, err error) {
	err = x.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		nodes, err := tx.Nodes(id)
		yes = slices.ContainsFunc(nodes, func(n muster.Node) bool { return n.Attempt > 0 })
		return err
	})
	return yes, err
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
	return x.set(ctx, c.ID)
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
	if err := x.c.Own.over(id); err != nil || !had {
		return err
	}
	return x.set(ctx)
}

// KeepsLocks reports whether a cluster's own volumes are served by a server of its own, which Hold holds.
func (x *Exports) KeepsLocks(id muster.ClusterID) bool { return x.c.Own.of(id) != nil }

// Hold ends the server of a cluster whose machines are about to stand still, until Serve. A cluster may have none.
// still: they have stood since it was held before.
func (x *Exports) Hold(ctx context.Context, id muster.ClusterID, still bool) error {
	if !x.KeepsLocks(id) {
		return nil
	}
	at, err := x.places(ctx, id)
	if err != nil {
		return err
	}
	return x.c.Own.hold(id, still, at)
}

// Serve has the server of a cluster serve again that was held. still: all of its machines that there are stand still, and go
// on when this is done.
func (x *Exports) Serve(ctx context.Context, id muster.ClusterID, still bool) error {
	if !x.KeepsLocks(id) {
		return nil
	}
	if err := x.await(ctx); err != nil {
		return err
	}
	if err := x.noteLate(ctx, id); err != nil {
		return err
	}
	at, err := x.places(ctx, id)
	if err != nil {
		return err
	}
	return x.c.Own.serve(ctx, id, still, at)
}

// noteLate notes what a cluster uses that could not be noted when this server started.
func (x *Exports) noteLate(ctx context.Context, id muster.ClusterID) error {
	x.mu.Lock()
	_, noted := x.uses[id]
	k := x.kept
	x.mu.Unlock()
	if noted || k == nil {
		return nil
	}
	var c muster.Cluster
	if err := x.c.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		c, err = tx.Cluster(id)
		return err
	}); err != nil {
		return err
	}
	mounts, err := k.Ensure(ctx, c)
	if err != nil {
		return err
	}
	return x.Open(ctx, c, mounts)
}

// places are the addresses of a cluster's nodes.
func (x *Exports) places(ctx context.Context, id muster.ClusterID) (map[string]netip.Addr, error) {
	at := map[string]netip.Addr{}
	err := x.c.Store.View(ctx, muster.System(), func(tx *store.Tx) error {
		nodes, err := tx.Nodes(id)
		for _, n := range nodes {
			if n.Machine == "" {
				continue
			}
			if a, ok := x.c.Address(n.Machine); ok {
				at[n.Name] = a
			}
		}
		return err
	})
	return at, err
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

// set makes the common server serve what is noted, and those of the clusters that are named.
func (x *Exports) set(ctx context.Context, clusters ...muster.ClusterID) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var common []Use
	own := map[muster.ClusterID][]Use{}
	for id, uses := range x.uses {
		for _, u := range uses {
			one := Use{Name: u.name, Path: u.path, ReadOnly: u.readOnly}
			for _, a := range u.machines {
				one.Machines = append(one.Machines, a)
			}
			if u.own {
				own[id] = append(own[id], one)
			} else {
				common = append(common, one)
			}
		}
	}
	err := x.c.Server.Set(ctx, Of(common))
	for _, id := range clusters {
		if s := x.c.Own.of(id); s != nil {
			err = errors.Join(err, s.Set(ctx, Of(own[id])))
		}
	}
	return err
}
