package daemon

import (
	"context"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control"
	"github.com/muster-hpc/muster/measure"
)

// openMeasure makes what has clusters measured.
func (s *Server) openMeasure() error {
	var err error
	s.measure, err = measure.New(measure.Config{
		Store: s.db, Dir: s.state.path("measuring"), Sign: s.signing.Sign, Providers: s.capabilities,
		Speak: s.agents.Speak, Wake: func(id muster.ClusterID) { s.converge.Wake(id) },
		Usage: s.agents.Usage, Scheduler: s.scheduler, Targets: s.cfg.PerformanceTargets, Issuer: s.instance, Stands: control.StandsOf, Clock: s.cfg.Clock, Log: s.log,
	})
	return err
}

// idleLook is how often idle machines are looked for that should be measured.
const idleLook = time.Minute

// measureIdle measures machines that nobody uses.
func (s *Server) measureIdle(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.cfg.Clock.After(idleLook):
		}
		if err := s.control.RunIdleBenchmarks(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("idle benchmark failed", "error", err)
		}
	}
}
