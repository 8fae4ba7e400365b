package daemon

import (
	"context"
	"net"
	"os"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/metal/kernels"
	"github.com/muster-hpc/muster/provider/fake"
	"github.com/muster-hpc/muster/provider/local"
)

// openProviders opens the sources of machines that the configuration names.
// The local one is always opened as root, so that machines of an earlier run
// with other flags are found and cleaned.
func (s *Server) openProviders(ctx context.Context) error {
	if err := s.openKernels(); err != nil {
		return err
	}
	if len(s.cfg.Local) > 0 {
		tree, err := LocalTree(s.cfg.Local, s.cfg.LocalLinks)
		if err != nil {
			return err
		}
		p, err := local.New(ctx, local.Config{
			Switches: switchesOf(tree),
			Dir:      s.cfg.State, Instance: s.instance, Epoch: s.epoch, Slices: s.cfg.Local, Oversubscribe: s.cfg.Oversubscribe,
			Open: s.cfg.LocalOpen, VMCard: s.cfg.VMCard, VMDevices: s.cfg.VMDevices, Networks: s.cfg.LocalNetworks,
			BootsAtOnce: s.cfg.BootWindow, AgentBinary: s.cfg.Agent, ImagePath: s.imagePath, ImageMasks: s.imageMasks, Kernel: s.kernelOf, Log: s.log, Clock: s.cfg.Clock,
		})
		if err != nil {
			return err
		}
		s.closes(p.Close)
		s.providers = append(s.providers, p)
		s.endpoints[p.Name()] = rackEndpoint(p.Rack(), s.cfg.Clock, p.ClusterAt)
	}
	if s.cfg.Fake > 0 {
		e := loopbackEndpoint()
		o := fake.Options{
			Machines: s.cfg.Fake, BootMax: s.cfg.FakeDelay, Log: s.log, Clock: s.cfg.Clock,
			Rates: fake.Rates{Die: s.cfg.FakeFail, Crash: s.cfg.FakeCrash, Stall: s.cfg.FakeStall},
		}
		if s.cfg.FakeSpread > 0 {
			o.BootMin = max(0, s.cfg.FakeDelay-s.cfg.FakeSpread)
		}
		if err := s.fakeAgents(ctx, &o); err != nil {
			return err
		}
		world := fake.New(o)
		s.closes(func() error { world.Close(); return nil })
		p := world.Open()
		s.closes(p.Close)
		s.providers = append(s.providers, p)
		s.endpoints[p.Name()] = e
	}
	if err := s.openMetal(ctx); err != nil {
		return err
	}
	s.capabilities = muster.Providers{}
	for _, p := range s.providers {
		s.capabilities[p.Name()] = p.Capabilities()
	}
	if len(s.providers) == 0 {
		s.log.Warn("no machine provider configured", "hint", "start with --local N, --metal-interface INTERFACE or --fake N")
	}
	return nil
}

// openKernels opens what machines with kernels of their own start with.
func (s *Server) openKernels() (err error) {
	if len(s.cfg.Local) == 0 && s.cfg.Metal.Interface == "" {
		return nil
	}
	if err := os.RemoveAll(s.state.path("metal", "initramfs")); err != nil { // where earlier versions had them
		return err
	}
	s.kernels, err = kernels.Open(s.state.path("kernels"), s.cfg.Agent, metalImages{s.catalog})
	return err
}

// kernelOf gives a virtual machine its kernel and initramfs.
func (s *Server) kernelOf(ctx context.Context, id muster.ImageID) (kernel, initramfs string, err error) {
	k, err := s.kernels.Of(ctx, id)
	if err != nil {
		return "", "", err
	}
	return k.Kernel, k.Initramfs, nil
}

// imagePath gives a machine its root file system, verified.
func (s *Server) imagePath(ctx context.Context, id muster.ImageID) (string, error) {
	_, f, err := s.images.OpenForBoot(ctx, id)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return f.Name(), nil
}

// imageMasks are the units that an image's manifest says are of no use in
// namespaces.
func (s *Server) imageMasks(id muster.ImageID) []string {
	m, err := s.images.Show(id)
	if err != nil {
		return nil // the boot fails by itself, and says why
	}
	return m.NamespaceMasks
}

// dial reaches a machine by its provider.
func (s *Server) dial(ctx context.Context, m muster.Machine, port int) (net.Conn, error) {
	for _, p := range s.providers {
		if p.Name() == m.Provider {
			return p.Dial(ctx, m.ID, port)
		}
	}
	return nil, muster.Errorf(muster.EUnavailable, "machine %s is of provider %s, which this server was started without", m.ID, m.Provider).Because(muster.ReasonNoProvider).
		WithHint("restart the server with the flags it had")
}
