package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/control/converge"
	"github.com/muster-hpc/muster/control/series"
	"github.com/muster-hpc/muster/internal/inherit"
	"github.com/muster-hpc/muster/internal/lastcontact"
	"github.com/muster-hpc/muster/measure"
	"github.com/muster-hpc/muster/metal/kernels"
	"github.com/muster-hpc/muster/nodes/agentserver"
	"github.com/muster-hpc/muster/nodes/nodeconf"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/provider"
	"github.com/muster-hpc/muster/storage/image"
	"github.com/muster-hpc/muster/storage/volume"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/vm/save"
)

// Server is a server with all its parts, open but not running.
type Server struct {
	cfg        Config
	log        *slog.Logger
	state      *state
	db         *store.DB
	instance   string
	epoch      int64 // of the records, see site
	succession *succession
	files      int // descriptors that this process may have
	authority  *pki.Authority
	signing    *pki.Signing
	hosts      pki.SSHAuthority // signs host keys of doors
	images     *image.Store
	catalog    catalog
	providers  []provider.Provider
	// capabilities are those of the providers, by name.
	capabilities muster.Providers
	endpoints    map[string]*endpoint // of agents, by provider
	agents       *agentserver.Server
	contacts     lastcontact.Contacts
	series       *series.Store
	metal        *metalParts    // nil: no bare machines
	kernels      *kernels.Store // nil: no machine has a kernel of its own
	exports      exports
	licences     *licences
	configs      *nodeconf.Maker
	control      *control.Service
	volumes      *volume.Manager
	converge     *converge.Converger
	measure      *measure.Runner
	runUse       measure.RunUse
	api          *api.API
	gateway      *sshDoor                   // nil: there is none
	keep         atomic.Pointer[image.Keep] // which derived images stay
	states       *save.Store                // of virtual machines that are saved
	listening    atomic.Value               // string: where the API is served over TLS
	closers      []func() error             // in the order of opening
}

// Run opens a server and runs it until ctx ends. Machines go on running.
func Run(ctx context.Context, c Config) error {
	s, err := Open(ctx, c)
	if err != nil {
		return err
	}
	err = s.Run(ctx)
	return errors.Join(err, s.Close())
}

// Open makes every part. It fails before it has changed anything if another
// server uses the state directory.
func Open(ctx context.Context, c Config) (_ *Server, err error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	inherit.Seal() // before anything is started
	s := &Server{cfg: c, log: c.Log, files: raiseFiles(), succession: newSuccession(), endpoints: map[string]*endpoint{}}
	s.keep.Store(&c.Derived)
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if s.state, err = openState(ctx, c.State); err != nil {
		return nil, err
	}
	s.closes(s.state.close)
	if err := removeOldStages(ctx, c.State); err != nil {
		s.log.Warn("removing partial backup failed: it contains secrets", "error", err)
	}
	if err = checkBefore(c.State); err != nil {
		return nil, err
	}
	if s.db, err = store.Open(ctx, s.state.path("muster.db"), store.Options{Clock: c.Clock, Log: c.Log, Headroom: store.Headroom}); err != nil {
		return nil, err
	}
	s.closes(s.db.Close)
	if err = s.identify(ctx); err != nil {
		return nil, err
	}
	if s.authority, err = pki.OpenAuthority(s.state.path("keys"), c.Clock); err != nil {
		return nil, err
	}
	if s.signing, err = pki.OpenSigning(s.state.path("keys"), c.Clock); err != nil {
		return nil, err
	}
	if s.hosts, err = pki.OpenHostAuthority(s.state.path("keys")); err != nil {
		return nil, err
	}
	s.hosts = s.hosts.WithClock(c.Clock)
	if err = s.settle(ctx); err != nil {
		return nil, err
	}
	if s.images, err = image.Open(s.state.path("images"), c.Log, image.WithClock(c.Clock), s.boundBuilds(ctx)); err != nil {
		return nil, err
	}
	s.catalog = catalog{Store: s.images, pretend: len(c.Local) == 0 && c.Metal.Interface == ""}
	s.openSeries(ctx)
	if err = s.openAgents(); err != nil {
		return nil, err
	}
	if err = s.openProviders(ctx); err != nil {
		return nil, err
	}
	if err = s.describeLocal(ctx); err != nil {
		return nil, err
	}
	s.states = &save.Store{Dir: s.state.path("states"), Quota: c.StatesBytes}
	s.openExports()
	s.openVolumes(ctx)
	s.openConfigs()
	s.openControl()
	if err = s.openGateway(ctx); err != nil {
		return nil, err
	}
	if err = s.openConverge(); err != nil {
		return nil, err
	}
	if err = s.openMeasure(); err != nil {
		return nil, err
	}
	s.api = api.New(api.Config{Service: s.control, Auth: s.db, Log: c.Log, Version: c.Version})
	return s, nil
}

// closes remembers what Close must do.
func (s *Server) closes(f func() error) { s.closers = append(s.closers, f) }

// Run serves until ctx ends or a part fails.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		<-ctx.Done()
		s.api.Close() // event streams would hold up the end
		return nil
	})
	ready := make(chan struct{})
	g.Go(func() error {
		defer close(ready)
		s.awaitMachines(ctx)
		return nil
	})
	acting, stop := s.whileCurrent(ctx)
	defer stop()
	if err := errors.Join(s.serveAPI(ctx, g, ready), s.serveGateway(ctx, g, ready), s.serveAgents(ctx, g), s.serveMetal(acting, g)); err != nil {
		cancel()
		return errors.Join(err, g.Wait())
	}
	g.Go(func() error { return s.keepCopies(ctx) })
	for _, act := range []func(context.Context) error{s.converge.Run, s.measure.Run, s.measureIdle, s.volumes.Run} {
		g.Go(func() error { return s.whileActing(acting, act) })
	}
	g.Go(func() error { return s.series.Run(ctx) })
	g.Go(func() error { return s.reloads(ctx) })
	g.Go(func() error { return s.exports.Run(ctx, s.volumes) })
	g.Go(func() error { return boundMemory(ctx) })
	s.log.Info("server started", "state", s.cfg.State, "socket", s.state.path("muster.sock"), "version", s.cfg.Version, "instance", s.instance)
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	s.log.Info("server stopped")
	return err
}

// Close lets go of everything, in the reverse order of opening.
func (s *Server) Close() error {
	var err error
	for i := len(s.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closers[i]())
	}
	s.closers = nil
	return err
}

// instance is the short name that namespaces and control groups of this state
// directory carry, made at its first start.
func instance(ctx context.Context, db *store.DB) (string, error) {
	const key = metaInstance
	var name string
	err := db.View(ctx, muster.System(), func(tx *store.Tx) error {
		var err error
		name, err = tx.Meta(key)
		return err
	})
	if muster.CodeOf(err) != muster.ENotFound && (err != nil || name != "") {
		return name, err
	}
	name = muster.RandomID(6)
	return name, db.Update(ctx, muster.System(), func(tx *store.Tx) error { return tx.SetMeta(key, name) })
}
