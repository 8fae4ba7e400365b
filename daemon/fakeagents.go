package daemon

import (
	"context"
	"net"

	"github.com/muster-hpc/muster/provider/fake"
)

// fakeAgents runs the agents of simulated machines in another process,
// where the configuration asks for it.
func (s *Server) fakeAgents(ctx context.Context, o *fake.Options) error {
	if s.cfg.FakeAgents == "" {
		return nil
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", s.cfg.FakeAgents)
	if err != nil {
		return err
	}
	s.closes(ln.Close)
	remote := fake.NewRemote()
	o.Agent = remote.Agent
	go func() {
		if err := remote.Serve(ln); err != nil {
			s.log.Error("simulated agents stopped", "error", err)
		}
	}()
	return nil
}
