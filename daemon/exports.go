package daemon

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/volume"
	"github.com/muster-hpc/muster/volume/export"
	"github.com/muster-hpc/muster/wire"
)

// exports serves volumes to machines that have kernels of their own: each cluster's to
// its machines' addresses, and to nobody else.
type exports struct {
	server exportServer
	// address is that of a machine on the management network; false: it has none now.
	address func(muster.MachineID) (netip.Addr, bool)
	ready   chan struct{} // closed once what living clusters use is known

	mu   sync.Mutex
	uses map[muster.ClusterID][]clusterUse
}

// exportServer is what serves them: *export.Server.
type exportServer interface {
	Set(ctx context.Context, set []export.Export) error
	Mount(name, target string, readOnly bool) wire.Mount
	Run(ctx context.Context) error
}

// clusterUse is a directory that machines of a cluster mount.
type clusterUse struct {
	name, path string
	readOnly   bool
	machines   map[muster.MachineID]netip.Addr
}

// openExports makes what serves volumes over the network of bare machines. Where that
// cannot be, clusters with volumes are told why.
func (s *Server) openExports() {
	if s.metal == nil {
		return
	}
	server, err := export.Open(export.Config{Dir: s.state.path("export"), Address: s.metal.address, Clock: s.cfg.Clock, Log: s.log})
	if err != nil {
		s.log.Warn("bare machines can have no volumes", "error", err)
		s.noExports = err
		return
	}
	s.closes(func() error { server.Close(); return nil })
	s.exports = newExports(server, s.metal.management)
}

func newExports(server exportServer, address func(muster.MachineID) (netip.Addr, bool)) *exports {
	return &exports{server: server, address: address, ready: make(chan struct{}), uses: map[muster.ClusterID][]clusterUse{}}
}

// management is the address that a machine has on the management network.
func (m *metalParts) management(id muster.MachineID) (netip.Addr, bool) {
	for _, nic := range m.provider.NICs(id) {
		if a, ok := m.leased(nic.MAC); ok && nic.Use == muster.UseManagement {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// elsewhere reports whether the machines of a cluster have kernels of their own.
func (s *Server) elsewhere(ctx context.Context, c muster.Cluster) (bool, error) {
	bare := false
	err := s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		list, err := tx.Machines(store.MachineFilter{Cluster: c.ID})
		for _, m := range list {
			bare = bare || s.capabilities.Of(m.Provider).OwnKernel
		}
		return err
	})
	if err == nil && bare && s.exports == nil {
		err = s.noExports
		if err == nil {
			err = muster.Errorf(muster.EUnavailable, "this server was started without bare machines").Because(muster.ReasonNoProvider).WithHint("start it with --metal-net again")
		}
	}
	return bare, err
}

// exported is how a machine elsewhere mounts an export.
func (s *Server) exported(name, target string, readOnly bool) wire.Mount {
	if s.exports == nil {
		return wire.Mount{}
	}
	return s.exports.server.Mount(name, target, readOnly)
}

// serveExports takes up what living clusters use, and serves it until ctx ends. What
// serves goes on without this process.
func (s *Server) serveExports(ctx context.Context) error {
	if s.exports == nil {
		return nil
	}
	// Whoever is not noted loses its volumes: what fails is tried again for a while before
	// that counts.
	for end := s.cfg.Clock.Now().Add(exportPatience); ; {
		err := s.noteAll(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the server ends, and that is why it failed
		}
		if s.cfg.Clock.Now().After(end) {
			s.log.Error("not all volumes of bare machines can be served", "error", err)
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.cfg.Clock.After(5 * time.Second):
		}
	}
	close(s.exports.ready)
	if err := s.exports.set(ctx); err != nil && ctx.Err() == nil {
		s.log.Error("the volumes of bare machines are not served", "error", err)
	}
	return s.exports.server.Run(ctx)
}

// exportPatience is how long a volume that cannot be mounted may hold up that all others
// are served anew. What an earlier server served is served meanwhile.
const exportPatience = time.Minute

// noteAll notes what all living clusters use. One that is deleted still shuts down.
func (s *Server) noteAll(ctx context.Context) error {
	var list []muster.Cluster
	err := s.db.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		list, err = tx.Clusters(store.ClusterFilter{Living: true})
		return err
	})
	for _, c := range list {
		if !c.Phase.HoldsMachines() {
			continue
		}
		if c.Phase == muster.ClusterDeleting { // no volume is mounted for it any more
			if left, failed := s.tenants(ctx, c.ID); failed == nil && len(left) == 0 {
				continue
			}
		}
		mounts, failed := s.volumes.Ensure(ctx, c)
		if failed == nil {
			failed = s.note(ctx, c, mounts)
		}
		err = errors.Join(err, failed)
	}
	return err
}

// export lets the machines of a cluster mount what it uses.
func (s *Server) export(ctx context.Context, c muster.Cluster, mounts []volume.Mount) error {
	if s.exports == nil {
		return nil
	}
	select {
	case <-s.exports.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.note(ctx, c, mounts); err != nil {
		return err
	}
	return s.exports.set(ctx)
}

// tenants are the machines that a cluster has, and which of them are its head's.
func (s *Server) tenants(ctx context.Context, id muster.ClusterID) (heads map[muster.MachineID]bool, err error) {
	heads = map[muster.MachineID]bool{}
	err = s.db.View(ctx, muster.System(), func(tx *store.Tx) error {
		nodes, err := tx.Nodes(id)
		if err != nil {
			return err
		}
		list, err := tx.Machines(store.MachineFilter{Cluster: id})
		for _, m := range list {
			if m.Phase.Held() {
				heads[m.ID] = slices.ContainsFunc(nodes, func(n muster.Node) bool { return n.Machine == m.ID && n.Head })
			}
		}
		return err
	})
	return heads, err
}

// note remembers which machines of a cluster mount what. Nobody is noted meanwhile to have
// left: what was read before and written after would open a door again.
func (s *Server) note(ctx context.Context, c muster.Cluster, mounts []volume.Mount) error {
	s.exports.mu.Lock()
	defer s.exports.mu.Unlock()
	heads, err := s.tenants(ctx, c.ID)
	if err != nil {
		return err
	}
	at := map[muster.MachineID]netip.Addr{}
	for id := range heads {
		if a, ok := s.exports.address(id); ok {
			at[id] = a
		}
	}
	var uses []clusterUse
	for _, m := range mounts {
		if m.Export == nil || m.NFS == nil {
			continue
		}
		u := clusterUse{name: m.Export.Name, path: m.Export.Path, readOnly: m.ReadOnly(), machines: map[muster.MachineID]netip.Addr{}}
		for id, a := range at {
			if !m.HeadOnly || heads[id] {
				u.machines[id] = a
			}
		}
		uses = append(uses, u)
	}
	if len(uses) == 0 {
		delete(s.exports.uses, c.ID)
		return nil
	}
	s.exports.uses[c.ID] = uses
	return nil
}

// set has the server serve what is noted.
func (x *exports) set(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []export.Use
	for _, uses := range x.uses {
		for _, u := range uses {
			one := export.Use{Name: u.name, Path: u.path, ReadOnly: u.readOnly}
			for _, a := range u.machines {
				one.Machines = append(one.Machines, a)
			}
			all = append(all, one)
		}
	}
	return x.server.Set(ctx, export.Of(all))
}

// left closes to a machine what its cluster uses: another may have it next.
func (s *Server) left(ctx context.Context, id muster.MachineID) {
	x := s.exports
	if x == nil {
		return
	}
	had := false
	x.mu.Lock()
	for _, uses := range x.uses {
		for _, u := range uses {
			_, one := u.machines[id]
			had = had || one
			delete(u.machines, id)
		}
	}
	x.mu.Unlock()
	if had {
		if err := x.set(ctx); err != nil {
			s.log.Error("a machine can still mount the volumes of the cluster that it left", "machine", id, "error", err)
		}
	}
}

// leftUnheard closes to every machine what it uses of a cluster that it has left, where
// nobody knows which these are: lines of the audit were lost.
func (s *Server) leftUnheard(ctx context.Context) {
	x := s.exports
	if x == nil {
		return
	}
	err := func() error {
		x.mu.Lock()
		defer x.mu.Unlock()
		for id, uses := range x.uses {
			heads, err := s.tenants(ctx, id)
			if err != nil {
				return err
			}
			for _, u := range uses {
				maps.DeleteFunc(u.machines, func(m muster.MachineID, _ netip.Addr) bool { _, still := heads[m]; return !still })
			}
		}
		return nil
	}()
	if err = errors.Join(err, x.set(ctx)); err != nil && ctx.Err() == nil {
		s.log.Error("machines can still mount the volumes of clusters that they left", "error", err)
	}
}

// over lets go of a cluster's volumes, which may be erased then.
func (s *Server) over(ctx context.Context, id muster.ClusterID) error {
	x := s.exports
	if x == nil {
		return nil
	}
	select {
	case <-x.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
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
