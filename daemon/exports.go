package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/provider/local"
	"github.com/muster-hpc/muster/provider/local/network"
	"github.com/muster-hpc/muster/storage/nfs"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/wire"
)

// exports serve volumes to machines with kernels of their own: each to those of one provider, on
// the network by which these reach the server. A cluster has machines of one fabric, so one of
// them serves it.
type exports []*nfs.Exports

// Directories of what serves volumes: to bare machines, and to virtual ones of this host.
const (
	metalExport = "export"
	localExport = "export-local"
)

// openExports makes what serves volumes over networks of machines. Where that
// cannot be, clusters with volumes are told why.
func (s *Server) openExports() {
	s.exports = exports{s.metalExports()}
	for _, p := range s.providers {
		if l, ok := p.(*local.Provider); ok {
			s.exports = append(s.exports, s.localExports(l))
		}
	}
}

// metalExports serve bare machines, and any that are of no provider which was opened.
func (s *Server) metalExports() *nfs.Exports {
	c := nfs.ExportsConfig{Store: s.db, Providers: muster.Providers{}, Clock: s.cfg.Clock, Log: s.log}
	for name, can := range s.capabilities {
		if !can.SharesHost {
			c.Providers[name] = can
		}
	}
	if s.metal == nil {
		c.Why = muster.Errorf(muster.EUnavailable, "this server was started without bare machines").Because(muster.ReasonNoProvider).WithHint("start it with --metal-interface again")
		return nfs.NewExports(c)
	}
	c.Address = s.metal.provider.Management
	return s.serveExports(c, nfs.Config{Dir: s.state.path(metalExport), Address: s.metal.address})
}

// localExports serve virtual machines of this host, whose rules let nobody else come there.
func (s *Server) localExports(p *local.Provider) *nfs.Exports {
	c := nfs.ExportsConfig{
		Store: s.db, Providers: muster.Providers{p.Name(): s.capabilities[p.Name()]}, Clock: s.cfg.Clock, Log: s.log, Address: p.Management,
	}
	if c.Providers[p.Name()].VM == nil {
		c.Why = muster.Errorf(muster.EUnavailable, "this host starts no virtual machines: there is no QEMU").Because(muster.ReasonProgramMissing).
			WithHint("install the package qemu-system-x86, then start the server again")
		return nfs.NewExports(c)
	}
	at := nfs.Config{Dir: s.state.path(localExport), Address: network.Gateway(), Port: network.VolumePort, In: p.Rack().Do, Ends: true, Clock: s.cfg.Clock, Log: s.log}
	own := at
	own.Dir, own.Port = filepath.Join(at.Dir, nfs.OwnDir), network.FirstOwnVolumePort
	servers, err := nfs.OpenOwn(nfs.OwnConfig{At: own, LastPort: network.LastOwnVolumePort, Wants: func(c muster.Cluster) bool {
		return c.Spec.VM != nil && spec.CannotSave(c.Spec.VM) == nil
	}})
	if err != nil { // nobody else may serve what they serve
		s.log.Warn("volume export unavailable", "error", err)
		c.Why = err
		return nfs.NewExports(c)
	}
	s.closes(func() error { servers.Close(); return nil })
	c.Own = servers
	return s.serveExports(c, at)
}

func (s *Server) serveExports(c nfs.ExportsConfig, at nfs.Config) *nfs.Exports {
	at.Clock, at.Log = s.cfg.Clock, s.log
	server, err := nfs.Open(at)
	if err != nil {
		s.log.Warn("volume export unavailable", "error", err)
		c.Why = err
	} else {
		s.closes(func() error { server.Close(); return nil })
		c.Server = server
	}
	return nfs.NewExports(c)
}

// Elsewhere reports whether machines of a cluster have kernels of their own.
func (l exports) Elsewhere(ctx context.Context, c muster.Cluster) (bool, error) {
	for _, x := range l {
		if yes, err := x.Elsewhere(ctx, c); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

// Mount is how such machines of a cluster mount an export.
func (l exports) Mount(ctx context.Context, c muster.Cluster, e volume.Export, target string, readOnly bool) (wire.Mount, error) {
	for _, x := range l {
		switch yes, err := x.Elsewhere(ctx, c); {
		case err != nil:
			return wire.Mount{}, err
		case yes:
			return x.Mount(ctx, c, e, target, readOnly)
		}
	}
	return wire.Mount{}, muster.Errorf(muster.EConflict, "cluster %s has no machine that mounts volumes over the network", c.Name).Because(muster.ReasonChangedMeanwhile)
}

// Open lets the machines of a cluster mount what it uses.
func (l exports) Open(ctx context.Context, c muster.Cluster, mounts []volume.Mount) error {
	return l.each(func(x *nfs.Exports) error { return x.Open(ctx, c, mounts) })
}

// Over lets go of a cluster's volumes.
func (l exports) Over(ctx context.Context, id muster.ClusterID) error {
	return l.each(func(x *nfs.Exports) error { return x.Over(ctx, id) })
}

// Hold has nobody serve what only a cluster mounts, whose machines are about to stand still.
func (l exports) Hold(ctx context.Context, id muster.ClusterID, still bool) error {
	return l.each(func(x *nfs.Exports) error { return x.Hold(ctx, id, still) })
}

// Serve has it served again.
func (l exports) Serve(ctx context.Context, id muster.ClusterID, still bool) error {
	return l.each(func(x *nfs.Exports) error { return x.Serve(ctx, id, still) })
}

// KeepsLocks reports whether a cluster's nodes keep the locks of files on volumes that only it mounts, over a save.
func (l exports) KeepsLocks(id muster.ClusterID) bool {
	return slices.ContainsFunc(l, func(x *nfs.Exports) bool { return x.KeepsLocks(id) })
}

// Left closes to a machine what its cluster uses.
func (l exports) Left(ctx context.Context, id muster.MachineID) {
	_ = l.each(func(x *nfs.Exports) error { x.Left(ctx, id); return nil })
}

// LeftUnheard closes to every machine what it uses of a cluster that it has left.
func (l exports) LeftUnheard(ctx context.Context) {
	_ = l.each(func(x *nfs.Exports) error { x.LeftUnheard(ctx); return nil })
}

func (l exports) each(f func(*nfs.Exports) error) error {
	var err error
	for _, x := range l {
		err = errors.Join(err, f(x))
	}
	return err
}

// Run serves until ctx ends.
func (l exports) Run(ctx context.Context, k *volume.Manager) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, x := range l {
		g.Go(func() error { return x.Run(ctx, k) })
	}
	return g.Wait()
}
